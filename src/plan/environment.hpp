#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace sbx::plan {

/// The program's NAME=VALUE list, sorted. Later sources win: what every sandbox has, what the
/// policy passes and sets, the request's own.
[[nodiscard]] std::vector<std::string> decide_environment(
    const policy::Environment& policy, const host::Host& host, const RunRequest& request,
    const std::vector<std::string>& bin_directories);

}  // namespace sbx::plan
