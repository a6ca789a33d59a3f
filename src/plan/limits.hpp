#pragma once

#include <vector>

#include "plan/plan.hpp"

/// Budgets, and the limits that each process inherits.
namespace sbx::plan {

/// Fills `process_limits` and `budgets`; what had to be lowered to the caller's hard limits, or
/// can't be said exactly without a cgroup, goes to `degraded`.
void decide_limits(const policy::Policy& policy, const host::Host& host, Plan& plan);

}  // namespace sbx::plan
