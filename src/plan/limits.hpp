#pragma once

#include <vector>

#include "plan/plan.hpp"

/// Budgets, and the limits that each process inherits.
namespace sbx::plan {

/// Fills `process_limits` and `budgets`. Adds to `degraded` what was lowered to the caller's hard
/// limits, and what can't be enforced exactly without a cgroup.
void decide_limits(const policy::Policy& policy, const host::Host& host, Plan& plan);

/// Sets what a policy limits for each call in a held sandbox. The other budgets stay the
/// sandbox's.
void narrow_limits(const policy::Policy& policy, const host::Host& host, Plan& plan);

}  // namespace sbx::plan
