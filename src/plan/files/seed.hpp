#pragma once

#include <vector>

#include "plan/files/deny.hpp"
#include "plan/plan.hpp"

namespace sbx::plan {

/// Files of the caller's home directory that are copied to the same path in the new one; '*' in the
/// last component matches any text. Missing files are skipped. Errors: policy "seed-outside-home",
/// "seed-too-large", "not-grantable".
[[nodiscard]] Result<std::vector<Mount>> seed_steps(const policy::Policy& policy,
                                                    const host::Host& host,
                                                    const DenyRules& denials);

}  // namespace sbx::plan
