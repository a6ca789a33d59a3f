#pragma once

#include "host/host.hpp"
#include "plan/plan.hpp"

namespace sbx::run {

/// Replaces what this machine can't do by a weaker way, reported as degraded. Returns the error if
/// there is none.
[[nodiscard]] Result<plan::Plan> weaker_plan(const plan::Plan& plan, const host::Host& host,
                                             const Error& error);

/// Adds to an error that names what isolation = "auto" has tried last.
void add_why_not_without(const Error& why, Error& error);

}  // namespace sbx::run
