#pragma once

#include "cli/run_command.hpp"

namespace sbx::cli {

/// `sbx mcp tools`. Returns its exit status.
[[nodiscard]] int mcp_tools_command(const Invocation& typed, const OwnProcess& process);
/// The same of `sbx mcp`.
[[nodiscard]] int mcp_command(const Invocation& typed, const OwnProcess& process);

}  // namespace sbx::cli
