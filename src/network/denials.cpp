#include "network/denials.hpp"

namespace sbx::network {
namespace {

constexpr const char* kRisk = "the program can send there what it reads";

}  // namespace

Denial refused_name(const plan::NetworkPlan& plan, std::string_view shown,
                    std::string_view canonical) {
  Denial denial{.kind = "network", .what = "name " + std::string(shown), .rule = plan.rule};
  if (canonical.empty()) return denial;
  // A question has no port: most programs that ask for a name go on to 443.
  denial.allow_with = "network.allow = [\"" + std::string(canonical) + ":443\"]";
  denial.risk = std::string(kRisk) + "; put the port that the program uses";
  return denial;
}

Denial refused_destination(const plan::NetworkPlan& plan, policy::Transport transport,
                           const std::string& host, std::uint16_t port) {
  const bool udp = transport == policy::Transport::udp;
  const std::string place = host + ":" + std::to_string(port);
  return {.kind = "network",
          .what = (udp ? "udp " : "tcp ") + place,
          .rule = plan.rule,
          .allow_with = "network.allow = [\"" + (udp ? "udp://" + place : place) + "\"]",
          .risk = kRisk};
}

}  // namespace sbx::network
