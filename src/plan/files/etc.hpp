#pragma once

#include <string>
#include <vector>

#include "plan/files/steps.hpp"

namespace sbx::plan {

/// /etc: synthetic files, and those of the system that programs need and that are not sensitive.
/// `user`: the name of uid 1000.
[[nodiscard]] std::vector<Mount> etc_steps(const host::Host& host, const std::string& system_root,
                                           policy::NetworkMode network, const std::string& user);

}  // namespace sbx::plan
