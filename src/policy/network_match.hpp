#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "policy/network_rules.hpp"
#include "policy/policy.hpp"

/// Which rule of a policy is about a destination.
namespace sbx::policy {

/// Whether everything that `rule` reaches is reached by `rules` together (ports may come from
/// several). For locks.
[[nodiscard]] bool covered(const NetworkRule& rule, std::span<const NetworkRule> rules);

/// A parsed rule of a policy and its place.
struct PlacedRule {
  NetworkRule rule;
  Origin origin;
};
/// The rules of a finished policy. Their texts were checked when it was read.
[[nodiscard]] std::vector<PlacedRule> network_rules(const Network& network);
[[nodiscard]] std::vector<Publication> publications(const Network& network);

/// The first rule that allows the name, or null.
[[nodiscard]] const PlacedRule* rule_for_name(std::span<const PlacedRule> rules,
                                              Transport transport, std::string_view canonical,
                                              std::uint16_t port);
/// The narrowest prefix rule that has address and port, or null. network/special decides whether
/// such a destination may be reached.
[[nodiscard]] const PlacedRule* rule_for_address(std::span<const PlacedRule> rules,
                                                 Transport transport, const Address& address,
                                                 std::uint16_t port);

}  // namespace sbx::policy
