#pragma once

#include "cli/invocation.hpp"

namespace sbx::cli {

/// `sbx policy list | show | check | explain`: 0 done, 1 findings, 2 usage, 125 could not.
[[nodiscard]] int policy_command(const Invocation& typed);

}  // namespace sbx::cli
