#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/event_loop.hpp"
#include "base/socket_request.hpp"
#include "network/dns_service.hpp"
#include "network/tally.hpp"
#include "plan/plan.hpp"
#include "policy/addresses.hpp"

/// What a program of a sandbox without a network tried to reach. Nothing here refuses anything: the
/// network namespace does. It is only named.
namespace sbx::network {

struct Attempt {
  policy::Address address;
  std::uint16_t port = 0;
  std::optional<policy::Transport> transport = std::nullopt;  ///< where it is known
};
/// Whether a connect(2) with this address leads to what answers questions for names.
[[nodiscard]] bool asks_for_names(std::span<const std::byte> socket_address);
/// Where a connect(2) with this address leads, when that is out of the sandbox: nothing for its own
/// loopback, other families, a port of 0 and what is too short to be an address.
[[nodiscard]] std::optional<Attempt> outside(std::span<const std::byte> socket_address);
/// The port, when it leads to the sandbox's own loopback; 0: it does not.
[[nodiscard]] std::uint16_t own_port(std::span<const std::byte> socket_address);

/// Names the attempts of one run, and answers its questions for names: none exists.
class Offline {
 public:
  /// The sockets of the sandbox's own loopback that questions for names come to.
  [[nodiscard]] static std::vector<SocketRequest> requests();

  /// `sockets` are those of requests(); the plan is borrowed.
  Offline(const plan::NetworkPlan& plan, std::vector<UniqueFd> sockets)
      : plan_(plan), sockets_(std::move(sockets)) {}

  /// From here on names are answered. Errors: internal (epoll).
  [[nodiscard]] Status attach(EventLoop& loop);
  /// `events` receives refused destinations.
  void tell(Events* events) { tally_.tell(events); }
  void tell_each(HearsRefusals hears) { tally_.tell_each(std::move(hears)); }
  /// Before the loop ends.
  void detach() { dns_.reset(); }

  /// One connect(2); `process_name` is asked at the first sight of a destination.
  void connect(const Attempt& destination, const std::function<std::string()>& process_name);
  /// A process is about to ask for names.
  void asks(std::uint32_t thread, std::function<std::string()> process_name);
  /// Whether a process has asked for names since this was asked last.
  [[nodiscard]] bool was_asked() { return std::exchange(was_asked_, false); }
  [[nodiscard]] std::vector<Denial> take_denials() { return tally_.take_denials(); }
  /// One connect(2) to the own loopback.
  void connect_inside(std::uint16_t port);
  void put_into(Outcome& outcome) {
    tally_.put_into(outcome);
    outcome.loopback_ports = own_ports_;
  }
  [[nodiscard]] const std::vector<std::uint16_t>& own_ports() const { return own_ports_; }
  /// The same, since this was called last.
  [[nodiscard]] std::vector<std::uint16_t> take_own_ports() {
    return std::exchange(own_ports_, {});
  }

 private:
  /// Who called connect(2) to ask for names last.
  struct Asker {
    std::uint32_t thread = 0;
    std::uint64_t since = 0;  ///< microseconds
    bool alone = false;       ///< no other process did shortly before
    std::function<std::string()> process_name;
  };
  dns::Answer answer(const dns::Query& query);
  [[nodiscard]] std::string asker() const;

  const plan::NetworkPlan& plan_;
  std::vector<UniqueFd> sockets_;
  Tally tally_;
  Asker asker_;
  std::vector<std::uint16_t> own_ports_;
  bool was_asked_ = false;
  std::optional<DnsService> dns_;
};

}  // namespace sbx::network
