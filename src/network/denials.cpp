#include "network/denials.hpp"

#include "network/names.hpp"
#include "policy/special_ranges.hpp"

namespace sbx::network {
namespace {

constexpr const char* kRisk = "the program can send there what it reads";
/// A question has no port: most programs that ask for a name go on to this one.
constexpr std::string_view kUsualPort = ":443";

/// An address as it stands in a rule.
std::string rule_text(const policy::Address& address) {
  const std::string text = address.text();
  return address.family == policy::Family::v6 ? "[" + text + "]" : text;
}

/// The one line that allows a destination. Without a network it has to set the mode, too.
std::string allow_line(const plan::NetworkPlan& plan, const std::string& place) {
  return plan.allow_list ? "network.allow = [\"" + place + "\"]"
                         : "network = { mode = \"allow-list\", allow = [\"" + place + "\"] }";
}

std::vector<std::string> allow_options(const plan::NetworkPlan& plan, const std::string& place) {
  if (plan.none_was_typed) return {};
  return {"--allow-host", place};
}

void offer_nothing(Denial& denial) {
  denial.allow_with = denial.risk = "";
  denial.options.clear();
}

}  // namespace

Denial refused_name(const plan::NetworkPlan& plan, std::string_view shown,
                    std::string_view canonical) {
  Denial denial{
      .kind = DenialKind::network, .what = "name " + std::string(shown), .rule = plan.rule};
  if (canonical.empty()) return denial;
  const std::string place = std::string(canonical) + std::string(kUsualPort);
  denial.allow_with = allow_line(plan, place);
  denial.options = allow_options(plan, place);
  denial.risk = std::string(kRisk) + "; plain http needs :80";
  return denial;
}

void put_port(Denial& denial, std::uint16_t port) {
  const std::string text = ":" + std::to_string(port);
  for (std::string* const each :
       {&denial.allow_with, denial.options.empty() ? nullptr : &denial.options.back()})
    if (each != nullptr)
      if (const auto at = each->rfind(kUsualPort); at != std::string::npos)
        each->replace(at, kUsualPort.size(), text);
  denial.risk = kRisk;
}

Denial refused_destination(const plan::NetworkPlan& plan, policy::Transport transport,
                           const std::string& host, std::uint16_t port) {
  const bool udp = transport == policy::Transport::udp;
  const std::string place = host + ":" + std::to_string(port);
  const std::string rule = udp ? "udp://" + place : place;
  return {.kind = DenialKind::network,
          .what = (udp ? "udp " : "tcp ") + place,
          .rule = plan.rule,
          .allow_with = allow_line(plan, rule),
          .risk = kRisk,
          .options = allow_options(plan, rule)};
}

Denial refused_address(const plan::NetworkPlan& plan, policy::Transport transport,
                       const policy::Address& address, std::uint16_t port) {
  Denial denial = refused_destination(plan, transport, rule_text(address), port);
  const policy::SpecialRange* const range = policy::special_range(address);
  const bool hopeless = range != nullptr && range->special == policy::Special::never;
  if (hopeless || is_synthetic(address) || port == 0) offer_nothing(denial);
  return denial;
}

void tell(Tally& tally, const plan::NetworkPlan& plan, const Destination& destination,
          const Unreached& failure) {
  const policy::Transport transport = destination.rule->rule.transport;
  if (!failure.refused_by_policy) {
    const char* const scheme = transport == policy::Transport::udp ? "udp://" : "";
    return tally.fail(scheme + destination.text(), failure.why);
  }
  const std::string host =
      destination.name.empty() ? rule_text(destination.address) : destination.name;
  Denial denial = refused_destination(plan, transport, host, destination.port);
  denial.rule = failure.why;
  denial.allow_with = failure.allow_with;
  denial.options = failure.options;
  if (denial.allow_with.empty()) offer_nothing(denial);
  tally.deny(std::move(denial));
}

Denial refused_connect(const plan::NetworkPlan& plan, std::optional<policy::Transport> transport,
                       const policy::Address& address, std::uint16_t port) {
  Denial denial = refused_destination(plan, transport.value_or(policy::Transport::tcp),
                                      rule_text(address), port);
  const std::string place = rule_text(address) + ":" + std::to_string(port);
  if (!transport) denial.what = "address " + place;
  // No rule allows port 53, multicast and the like.
  if (!policy::parse_network_rule(place)) offer_nothing(denial);
  return denial;
}

}  // namespace sbx::network
