#pragma once

#include <string>
#include <vector>

#include "plan/files/steps.hpp"

namespace sbx::plan {

/// /etc: synthetic files, and those of the system that programs need and that are not sensitive.
[[nodiscard]] std::vector<Mount> etc_steps(const host::Host& host, const std::string& system_root,
                                           policy::NetworkMode network);

}  // namespace sbx::plan
