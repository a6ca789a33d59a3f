#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sbx/outcome.hpp>

#include "network/dialer.hpp"
#include "network/tally.hpp"
#include "plan/plan.hpp"
#include "policy/network_rules.hpp"

/// What a refused attempt is called, and the line of a policy that would allow it.
namespace sbx::network {

/// A name that no rule has. `shown`: for people; `canonical`: empty where it is not a host name.
[[nodiscard]] Denial refused_name(const plan::NetworkPlan& plan, std::string_view shown,
                                  std::string_view canonical);
/// The port that the program means, into what refused_name() offers.
void put_port(Denial& denial, std::uint16_t port);
/// A connection or datagram. `host` is a name or the text of an address as it stands in a rule
/// ("[2001:db8::1]").
[[nodiscard]] Denial refused_destination(const plan::NetworkPlan& plan, policy::Transport transport,
                                         const std::string& host, std::uint16_t port);
/// The same about an address: nothing is suggested for what no rule can allow.
[[nodiscard]] Denial refused_address(const plan::NetworkPlan& plan, policy::Transport transport,
                                     const policy::Address& address, std::uint16_t port);
/// Says in the record why an allowed destination was not reached: as a denial where the policy
/// refused what its name leads to, else as a failure.
void tell(Tally& tally, const plan::NetworkPlan& plan, const Destination& destination,
          const Unreached& failure);
/// An address that connect(2) was called with. No transport: it is not known for which one.
[[nodiscard]] Denial refused_connect(const plan::NetworkPlan& plan,
                                     std::optional<policy::Transport> transport,
                                     const policy::Address& address, std::uint16_t port);

}  // namespace sbx::network
