#include <gtest/gtest.h>
// rapidcheck/gtest.h uses what gtest.h declares.
#include <rapidcheck/gtest.h>

#include "policy/network_match.hpp"
#include "policy/network_names.hpp"

namespace sbx::policy {
namespace {

rc::Gen<std::string> near_rule() {
  return rc::gen::map(
      rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
          "a", "example", "org", ".", "..", ":", "443", "80", "53", "-", ",", "*", "*.", "[", "]",
          "/", "8", "16", "10", "0", "127", "::", "2001:db8", "ffff", "udp://", "tcp://", "http://",
          "@", "%", "A", "\xc3\xbc", "\xff", std::string(1, '\0'), " ", "xn--", "0x7f", "localhost",
          "host.sbx.internal", std::string(60, 'b'))),
      [](const std::vector<std::string>& pieces) {
        std::string text;
        for (const std::string& piece : pieces) text += piece;
        return text;
      });
}

/// Written independently of the code under test.
void check_invariants(const NetworkRule& rule) {
  RC_ASSERT(!rule.ports.empty());
  RC_ASSERT(!rule.has_port(0) && !rule.has_port(53));
  if (rule.kind == NetworkRule::Kind::prefix) {
    RC_ASSERT(masked(rule.prefix.address, rule.prefix.length) == rule.prefix.address);
    RC_ASSERT(!rule.exact || rule.prefix.length == rule.prefix.address.bits());
    return;
  }
  RC_ASSERT(!rule.name.empty() && rule.name.size() <= 253);
  RC_ASSERT(rule.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_.") ==
            std::string::npos);
  RC_ASSERT(canonical_name(rule.name).value_or("") == rule.name);
  RC_ASSERT(!parse_v4(rule.name) && !parse_v6(rule.name));
}

RC_GTEST_PROP(NetworkRuleProperty, WhatIsReadReadsBackAsTheSame, ()) {
  const std::string text = *near_rule();
  const auto rule = parse_network_rule(text);
  RC_CLASSIFY(rule.has_value(), "read");
  if (!rule) {
    RC_ASSERT(!rule.error().message.empty() && !rule.error().hint.empty());
    return;
  }
  check_invariants(*rule);
  RC_ASSERT(parse_network_rule(rule->text()).value_or(NetworkRule{}) == *rule);
  RC_ASSERT(covered(*rule, std::span(&*rule, 1)));
}

rc::Gen<NetworkRule> random_rule() {
  return rc::gen::map(rc::gen::tuple(rc::gen::element<std::string>(
                                         "a.example", "*.a.example", "b.a.example", "10.0.0.0/8",
                                         "10.1.0.0/16", "10.1.2.3", "10.1.2.3/32", "11.1.0.0/16",
                                         "0.0.0.0/0", "[::/0]", "[fd00::/8]", "[2a00::/16]"),
                                     rc::gen::element<std::string>("80", "80-90", "85,443", "*")),
                      [](const std::tuple<std::string, std::string>& parts) {
                        return *parse_network_rule(std::get<0>(parts) + ":" + std::get<1>(parts));
                      });
}

RC_GTEST_PROP(NetworkRuleProperty, WhatIsCoveredHasNothingThatTheOtherHasNot, ()) {
  const NetworkRule wide = *random_rule();
  const NetworkRule rule = *random_rule();
  if (!covered(rule, std::span(&wide, 1))) return;
  for (const char* const name : {"a.example", "b.a.example", "c.b.a.example"})
    RC_ASSERT(!rule.has_name(name) || wide.has_name(name));
  for (const std::uint16_t port : std::to_array<std::uint16_t>({1, 80, 85, 90, 443, 65535}))
    RC_ASSERT(!rule.has_port(port) || wide.has_port(port));
  if (rule.kind != NetworkRule::Kind::prefix) return;
  RC_ASSERT(wide.prefix.contains(rule.prefix));
}

}  // namespace
}  // namespace sbx::policy
