#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "base/socket_request.hpp"
#include "network/attempts.hpp"
#include "network/dns_service.hpp"
#include "network/listeners.hpp"
#include "network/names.hpp"
#include "network/network_namespace.hpp"
#include "network/tcp_service.hpp"
#include "plan/plan.hpp"

/// The gateway of a sandbox whose network.mode is "allow-list". Its namespace is joined to the
/// sandbox's; every address there is local, so that every connection and datagram ends in a socket
/// of the supervisor or is refused by the kernel. The supervisor, in the host's namespaces,
/// connects it to its destination.
namespace sbx::network {

class Gateway {
 public:
  /// The sockets that it needs in its namespace, from the start.
  static std::vector<SocketRequest> requests(const plan::NetworkPlan& plan, bool ipv6);

  /// `sockets` are those of requests(); `space` is the gateway's namespace. Listens for everything
  /// that is known before the program starts: call before it does. The plan is borrowed.
  /// Errors: policy (a rule that can't be enforced), setup.
  [[nodiscard]] static Result<std::unique_ptr<Gateway>> make(const plan::NetworkPlan& plan,
                                                             NetworkNamespace space,
                                                             std::vector<UniqueFd> sockets,
                                                             bool ipv6);
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  ~Gateway();

  /// From here on connections are served. Errors: internal (epoll).
  [[nodiscard]] Status attach(EventLoop& loop);
  /// `events` receives refused destinations.
  void tell(Events* events) { tally_.tell(events); }
  void tell_each(HearsRefusals hears) { tally_.tell_each(std::move(hears)); }
  /// The program may have ended, but something that it sent is still on its way out: the loop
  /// passes it on.
  [[nodiscard]] bool sends();
  /// Before the loop ends: everything is closed.
  void detach();
  /// The program is about to reach this place: what a rule with many ports allows is opened.
  /// Nothing is decided by it.
  void expect(const policy::Address& address, std::uint16_t port);
  /// What was used and refused.
  void put_into(Outcome& outcome) { tally_.put_into(outcome); }

 private:
  /// What lives in the loop.
  struct Served;
  Gateway(const plan::NetworkPlan& plan, NetworkNamespace space);
  Status listen(std::vector<UniqueFd> sockets, bool ipv6);
  Status bind_dns(policy::Family family);
  dns::Answer answer(const dns::Query& query);
  Listener* open(policy::Transport transport, const policy::Address& address, std::uint16_t port);
  void seen(const Attempts::Packet& packet);

  const plan::NetworkPlan& plan_;
  SocketPool pool_;
  Names names_;
  Listeners listeners_;
  Tally tally_;
  std::vector<UniqueFd> dns_udp_;
  std::vector<UniqueFd> dns_tcp_;
  std::vector<UniqueFd> raw_;
  std::unique_ptr<Served> served_;
};

}  // namespace sbx::network
