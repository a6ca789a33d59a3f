#pragma once

#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "cli/invocation.hpp"
#include "host/host.hpp"
#include "plan/plan.hpp"
#include "policy/policy.hpp"

namespace sbx::cli {

/// After a failure: the one option that would most likely have helped, at most one line. A hint,
/// not a denial.
[[nodiscard]] std::vector<std::string> hints_after(const Outcome& outcome,
                                                   const policy::Policy& policy,
                                                   const plan::Plan& plan, const host::Host& host,
                                                   const Invocation& typed);

}  // namespace sbx::cli
