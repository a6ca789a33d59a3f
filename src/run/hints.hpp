#pragma once

#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "host/host.hpp"
#include "plan/plan.hpp"
#include "policy/policy.hpp"

namespace sbx::run {

/// After a failure of unknown cause: the obstacle that is certain, or at least common, and the option that removes
/// it. Empty otherwise.
[[nodiscard]] std::string hint_after_failure(const Outcome& outcome, const policy::Policy& policy,
                                             const plan::Plan& plan, const host::Host& host,
                                             const std::vector<std::string>& operands);

}  // namespace sbx::run
