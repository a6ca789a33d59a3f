#pragma once

#include "cli/invocation.hpp"

/// `sbx mcp install`, `sbx mcp remove` and `sbx mcp check`.
namespace sbx::cli::mcp_install {

/// Return the exit status: 1 where the user must do what sbx does not.
[[nodiscard]] int install_command(const Invocation& typed);
[[nodiscard]] int remove_command(const Invocation& typed);
[[nodiscard]] int check_command(const Invocation& typed);

}  // namespace sbx::cli::mcp_install
