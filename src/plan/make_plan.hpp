#pragma once

#include "base/result.hpp"
#include "plan/plan.hpp"

namespace sbx::plan {

/// Decides everything about one run: paths, mounts in order, filter, limits, argv, environment, and
/// what can't be enforced. Reads the host through `host.files` only; changes nothing. Errors:
/// usage, policy, host, not_found, not_executable.
[[nodiscard]] Result<Plan> make_plan(const policy::Policy& policy, const host::Host& host,
                                     const RunRequest& request);

}  // namespace sbx::plan
