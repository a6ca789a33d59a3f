#pragma once

#include "cli/run_command.hpp"

namespace sbx::cli {

/// `sbx mcp`. Returns its exit status.
[[nodiscard]] int mcp_command(const Invocation& typed, const OwnProcess& process);

}  // namespace sbx::cli
