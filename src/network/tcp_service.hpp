#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "base/event_loop.hpp"
#include "network/dialer.hpp"
#include "network/listeners.hpp"
#include "network/relay.hpp"
#include "network/tally.hpp"
#include "plan/plan.hpp"

namespace sbx::network {

/// The program's TCP connections: accepted from the gateway's listeners, led to where the rules let
/// them.
class TcpService {
 public:
  /// At a time; what comes then is reset and named.
  static constexpr std::size_t kMostConnections = 4096;

  TcpService(EventLoop& loop, const plan::NetworkPlan& plan, Dialer& dialer, Tally& tally);
  TcpService(const TcpService&) = delete;
  TcpService& operator=(const TcpService&) = delete;
  ~TcpService();

  /// The listener is borrowed.
  [[nodiscard]] Status serve(Listener& listener);
  /// Takes what waits there, and forgets the listener. No-op for one that is not served.
  void release(Listener& listener);
  /// Adds what live connections passed on since they were counted last.
  void count();
  /// A connection may still pass on what the program sent.
  [[nodiscard]] bool sends() const;

 private:
  class Connection;
  void accept_from(const Listener& listener, int most);
  void rest(int listener);
  void take(const Listener& listener, UniqueFd socket);
  void remove(const Connection& connection);

  EventLoop& loop_;
  const plan::NetworkPlan& plan_;
  Dialer& dialer_;
  Tally& tally_;
  Pipes pipes_;
  std::size_t most_;
  std::unordered_map<int, EventLoop::TimerId> resting_;  ///< by the listener's descriptor
  std::unordered_map<const Connection*, std::unique_ptr<Connection>> connections_;
};

}  // namespace sbx::network
