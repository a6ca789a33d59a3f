#pragma once

#include <optional>
#include <string>

#include "host/host.hpp"
#include "plan/plan.hpp"
#include "policy/policy.hpp"

/// Live grants where there are no mounts: a rule of Landlock for a directory holds for all that is
/// in it and will be, and takes no name out.
namespace sbx::plan {

/// The policy asks for one: filesystem.write, or a workspace that is changed in place.
[[nodiscard]] bool wants_live_grant(const policy::Policy& policy);

/// What a rule can't keep of the promises of a live grant, and the way out.
struct LiveObstacle {
  std::string what;
  Origin origin;
  std::string hint;
};
/// The first one in a plan of mounts, before these are turned into rules.
[[nodiscard]] std::optional<LiveObstacle> live_obstacle(const host::Host& host, const Plan& plan);

/// Says what is kept by weaker means.
void note_live(Plan& plan);

}  // namespace sbx::plan
