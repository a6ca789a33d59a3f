#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace sbx::plan {

/// NAME=VALUE of the program, sorted: what every sandbox has, then what the policy passes and sets,
/// then the request's.
[[nodiscard]] std::vector<std::string> decide_environment(
    const policy::Environment& policy, const host::Host& host, const RunRequest& request,
    const std::vector<std::string>& bin_folders);

}  // namespace sbx::plan
