#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sbx/outcome.hpp>

#include "host/host.hpp"
#include "plan/plan.hpp"
#include "policy/policy.hpp"

namespace sbx::run {

/// After a failure of unknown cause: the obstacle that is certain, or at least common, and the option that removes
/// it. Empty otherwise. `how`: "add", or what the user does with the option instead.
[[nodiscard]] std::string hint_after_failure(const Outcome& outcome, const policy::Policy& policy,
                                             const plan::Plan& plan, const host::Host& host,
                                             const std::vector<std::string>& operands,
                                             std::string_view how = "add");

}  // namespace sbx::run
