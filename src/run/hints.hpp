#pragma once

#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "host/host.hpp"
#include "plan/plan.hpp"
#include "policy/policy.hpp"

namespace sbx::run {

/// After a failure whose cause is not known: what certainly stood in the way, or at least often does, with the option that
/// helps. Empty: nothing is known to be true.
[[nodiscard]] std::string hint_after_failure(const Outcome& outcome, const policy::Policy& policy,
                                             const plan::Plan& plan, const host::Host& host,
                                             const std::vector<std::string>& operands);

}  // namespace sbx::run
