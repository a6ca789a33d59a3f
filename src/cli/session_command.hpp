#pragma once

#include "cli/invocation.hpp"
#include "cli/run_command.hpp"

namespace sbx::cli {

/// `sbx session ...`. Returns the exit status.
[[nodiscard]] int session_command(const Invocation& typed, const OwnProcess& process);

}  // namespace sbx::cli
