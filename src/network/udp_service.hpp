#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "base/event_loop.hpp"
#include "network/dialer.hpp"
#include "network/listeners.hpp"
#include "network/socket_address.hpp"
#include "network/tally.hpp"
#include "plan/plan.hpp"

namespace sbx::network {

/// The program's datagrams: what one of its sockets sends to one destination is a flow, with a
/// socket of its own on the host's network, until it was idle for a minute.
class UdpService {
 public:
  /// At a time; what begins then is dropped and named.
  static constexpr std::size_t kMostFlows = 1024;

  UdpService(EventLoop& loop, const plan::NetworkPlan& plan, Dialer& dialer, Tally& tally);
  UdpService(const UdpService&) = delete;
  UdpService& operator=(const UdpService&) = delete;
  ~UdpService();

  /// The listener is borrowed.
  [[nodiscard]] Status serve(Listener& listener);

 private:
  struct Flow;
  void datagrams(Listener& listener);
  bool datagram(Listener& listener);
  Flow* flow_of(Listener& listener, const SocketAddress& client, const SocketAddress& to);
  void reached(const std::string& key, std::expected<UniqueFd, Unreached> answer);
  void answers(Flow& flow);
  void remove(const std::string& key);
  void expire();

  EventLoop& loop_;
  const plan::NetworkPlan& plan_;
  Dialer& dialer_;
  Tally& tally_;
  std::unordered_map<std::string, std::unique_ptr<Flow>> flows_;
  EventLoop::TimerId expiry_ = EventLoop::kNoTimer;
};

}  // namespace sbx::network
