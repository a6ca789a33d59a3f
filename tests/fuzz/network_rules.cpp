// A valid rule has one text form, which parses back to the same rule; an invalid one gives an error
// with a fix.

#include <string>
#include <string_view>

#include "fuzz.hpp"
#include "policy/network_match.hpp"
#include "policy/network_names.hpp"
#include "policy/network_rules.hpp"

using namespace sbx::policy;

namespace {

void check_rule(std::string_view text) {
  const auto rule = parse_network_rule(text);
  if (!rule) {
    must(!rule.error().message.empty() && !rule.error().hint.empty());
    return;
  }
  const std::string canonical = rule->text();
  const auto again = parse_network_rule(canonical);
  must(again.has_value() && *again == *rule && again->text() == canonical);
  must(covered(*rule, std::span(&*rule, 1)));
  must(!rule->has_port(0) && !rule->has_port(53) && rule->port_count() > 0);
  if (rule->kind == NetworkRule::Kind::prefix) return;
  const auto name = canonical_name(rule->name);
  must(name.has_value() && *name == rule->name);
  must(!parse_v4(*name) && !parse_v6(*name));
  must(rule->kind == NetworkRule::Kind::wildcard ? !rule->has_name(*name) : rule->has_name(*name));
}

void check_publication(std::string_view text) {
  const auto one = parse_publication(text);
  if (!one) return;
  const auto again = parse_publication(one->text());
  must(again.has_value() && *again == *one && one->host_port != 0 && one->port != 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_rule(text);
  check_rule(with_default_port(text));
  check_publication(text);
  return 0;
}
