#pragma once

#include <string>

#include <sbx/outcome.hpp>

#include "cli/invocation.hpp"
#include "host/host.hpp"
#include "plan/plan.hpp"
#include "policy/policy.hpp"

namespace sbx::cli {

/// After a failure whose cause is not known: what certainly stood in the way, or at least often does, with the option that
/// helps. Empty: nothing is known to be true.
[[nodiscard]] std::string hint_after_failure(const Outcome& outcome, const policy::Policy& policy,
                                             const plan::Plan& plan, const host::Host& host,
                                             const Invocation& typed);

}  // namespace sbx::cli
