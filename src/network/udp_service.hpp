#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/event_loop.hpp"
#include "network/dialer.hpp"
#include "network/listeners.hpp"
#include "network/socket_address.hpp"
#include "network/tally.hpp"
#include "network/unreachable.hpp"
#include "plan/plan.hpp"

namespace sbx::network {

/// The program's datagrams: what one of its sockets sends to one destination is a flow, with a
/// socket of its own on the host's network, until it was idle for a minute.
class UdpService {
 public:
  /// At a time; then the one that was idle for longest gives way, or what begins is refused and
  /// named.
  static constexpr std::size_t kMostFlows = 1024;

  /// `space`: the gateway's.
  UdpService(EventLoop& loop, const plan::NetworkPlan& plan, Dialer& dialer, Tally& tally,
             const NetworkNamespace& space);
  UdpService(const UdpService&) = delete;
  UdpService& operator=(const UdpService&) = delete;
  ~UdpService();

  /// The listener is borrowed.
  [[nodiscard]] Status serve(Listener& listener);
  /// Ends the flows of a listener that is about to be closed, and forgets it.
  void release(Listener& listener);
  /// A datagram that came before its listener did.
  void take(Listener& listener, const SocketAddress& client, const policy::Address& to,
            std::span<const std::uint8_t> data);
  /// Datagrams of the program wait until their destination is known.
  [[nodiscard]] bool sends() const { return waiting_bytes_ > 0; }

 private:
  struct Flow;
  void datagrams(Listener& listener);
  bool datagram(Listener& listener);
  Flow* flow_of(Listener& listener, const SocketAddress& client, const SocketAddress& to);
  void reached(const std::string& key, std::expected<UniqueFd, Unreached> answer);
  void keep_waiting(Flow& flow, std::span<const std::uint8_t> data);
  std::vector<std::vector<std::uint8_t>> take_waiting(Flow& flow);
  void send(Flow& flow, std::span<const std::uint8_t> data);
  void answers(Flow& flow);
  void refused_there(Flow& flow);
  void tell_client(const Flow& flow);
  void remove(const std::string& key);
  void expire();
  void expire_later();
  bool make_room();

  EventLoop& loop_;
  const plan::NetworkPlan& plan_;
  Dialer& dialer_;
  Tally& tally_;
  std::unordered_map<std::string, std::unique_ptr<Flow>> flows_;
  Unreachable unreachable_;
  const std::uint64_t idle_;       ///< microseconds without a datagram after which a flow ends
  std::size_t waiting_bytes_ = 0;  ///< of all flows
  EventLoop::TimerId expiry_ = EventLoop::kNoTimer;
};

}  // namespace sbx::network
