#pragma once

#include <vector>

#include "plan/files/deny.hpp"
#include "plan/plan.hpp"

namespace sbx::plan {

/// Files of the caller's home that are copied to the same place in the new one; a '*' in the last component stands for
/// any text. What is missing is left out. Errors: policy "seed-outside-home", "seed-too-large", "not-grantable".
[[nodiscard]] Result<std::vector<Mount>> seed_steps(const policy::Policy& policy,
                                                    const host::Host& host, const Denials& denials);

}  // namespace sbx::plan
