#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/event_loop.hpp"
#include "base/unique_fd.hpp"
#include "network/resolver.hpp"
#include "network/special.hpp"
#include "plan/plan.hpp"
#include "policy/network_match.hpp"

namespace sbx::network {

/// What a connection of the program asks for, in terms of the policy.
struct Destination {
  const policy::PlacedRule* rule = nullptr;
  std::string name;         ///< canonical; empty: an address
  policy::Address address;  ///< of a prefix rule
  std::uint16_t port = 0;

  /// "api.example.com:443", "10.1.2.3:80".
  [[nodiscard]] std::string text() const;
};

/// Why a destination was not reached.
struct Unreached {
  std::string why;  ///< "no such name", "refused by 192.0.2.1", "timed out after 10 s"
  bool refused_by_policy = false;
  std::string allow_with;              ///< when refused by policy
  std::vector<std::string> options{};  ///< the same as options of sbx run
};

/// Reaches destinations on the host's network: resolves names now, drops addresses that may not be
/// reached, connects to what is left and to nothing else. IPv4 and IPv6.
class Dialer {
 public:
  /// A connected socket (of UDP: one that has its destination).
  using Reached = std::function<void(std::expected<UniqueFd, Unreached>)>;
  using DialId = std::uint64_t;

  /// Uses network.private and all rules of the plan, which outlives this.
  Dialer(EventLoop& loop, const plan::NetworkPlan& plan);
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;
  ~Dialer();

  /// Calls back once, never before dial() returned.
  DialId dial(const Destination& destination, Reached reached);
  /// Its callback is not called any more. No-op for one that is over.
  void cancel(DialId id);
  [[nodiscard]] std::size_t under_way() const { return dials_.size(); }

 private:
  struct Dial;
  void resolve(Dial& dial);
  void resolved(DialId id, Resolver::Answer answer);
  void check(Dial& dial, const std::vector<policy::Address>& addresses);
  void try_next(Dial& dial);
  bool connect_to(Dial& dial, const policy::Address& address);
  void connected(DialId id);
  void gave_up_waiting(DialId id);
  void end(Dial& dial, std::expected<UniqueFd, Unreached> answer);
  void end_later(Dial& dial, Unreached why);
  const HostAddresses& host_addresses();

  EventLoop& loop_;
  const plan::NetworkPlan& plan_;
  std::unique_ptr<Resolver> resolver_;
  std::unordered_map<DialId, std::unique_ptr<Dial>> dials_;
  DialId last_ = 0;
  HostAddresses host_;
  UniqueFd address_changes_;  ///< netlink: readable when the host's addresses changed
  bool host_known_ = false;
};

}  // namespace sbx::network
