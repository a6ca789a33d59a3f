#include "policy/network_match.hpp"

#include <algorithm>

#include "policy/special_ranges.hpp"

namespace sbx::policy {
namespace {

bool covers_host(const NetworkRule& wide, const NetworkRule& rule) {
  using enum NetworkRule::Kind;
  if (wide.kind == prefix || rule.kind == prefix) {
    if (wide.kind != rule.kind || !wide.prefix.contains(rule.prefix)) return false;
    // One address without a length reaches more than any prefix does.
    if (rule.exact) return wide.exact;
    // A prefix reaches a special range only from within.
    const SpecialRange* range = special_range(rule.prefix);
    return range == nullptr || range->special == Special::global ||
           range->prefix.contains(wide.prefix);
  }
  if (wide.kind == host || rule.kind == host) return wide.kind == rule.kind;
  if (wide.kind == name) return rule.kind == name && wide.name == rule.name;
  return rule.kind == wildcard ? is_at_or_below(rule.name, wide.name)
                               : rule.name != wide.name && is_at_or_below(rule.name, wide.name);
}

}  // namespace

bool covered(const NetworkRule& rule, std::span<const NetworkRule> rules) {
  std::vector<PortRange> ports;
  for (const NetworkRule& wide : rules) {
    if (wide.transport == rule.transport && covers_host(wide, rule))
      ports.insert(ports.end(), wide.ports.begin(), wide.ports.end());
  }
  ports = merged(std::move(ports));
  return std::ranges::all_of(rule.ports, [&](const PortRange& range) {
    return std::ranges::any_of(ports, [&](const PortRange& wide) {
      return wide.first <= range.first && range.last <= wide.last;
    });
  });
}

std::vector<PlacedRule> network_rules(const Network& network) {
  std::vector<PlacedRule> rules;
  for (const auto& entry : network.allow) {
    // Checked when it was read; a text from elsewhere that is wrong allows nothing.
    if (auto rule = parse_network_rule(entry.value))
      rules.push_back({std::move(*rule), entry.origin});
  }
  return rules;
}

std::vector<Publication> publications(const Network& network) {
  std::vector<Publication> list;
  for (const auto& entry : network.publish) {
    if (const auto one = parse_publication(entry.value)) list.push_back(*one);
  }
  return list;
}

const PlacedRule* rule_for_name(std::span<const PlacedRule> rules, Transport transport,
                                std::string_view canonical, std::uint16_t port) {
  const auto found = std::ranges::find_if(rules, [&](const PlacedRule& placed) {
    return placed.rule.transport == transport && placed.rule.has_name(canonical) &&
           placed.rule.has_port(port);
  });
  return found == rules.end() ? nullptr : &*found;
}

const PlacedRule* rule_for_address(std::span<const PlacedRule> rules, Transport transport,
                                   const Address& address, std::uint16_t port) {
  const PlacedRule* best = nullptr;
  for (const PlacedRule& placed : rules) {
    const NetworkRule& rule = placed.rule;
    if (rule.kind != NetworkRule::Kind::prefix || rule.transport != transport ||
        !rule.prefix.contains(address) || !rule.has_port(port))
      continue;
    const auto rank = [](const NetworkRule& one) {
      return one.prefix.length * 2 + (one.exact ? 1U : 0U);
    };
    if (best == nullptr || rank(rule) > rank(best->rule)) best = &placed;
  }
  return best;
}

}  // namespace sbx::policy
