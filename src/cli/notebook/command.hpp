#pragma once

#include "cli/invocation.hpp"
#include "cli/run_command.hpp"

namespace sbx::cli {

/// `sbx run --cells FILE`: runs a notebook's cells in a session of its own, which ends with it.
/// Returns the exit status.
[[nodiscard]] int cells_command(const Invocation& typed, const OwnProcess& process);

/// The answer to a command line with --cells that could not be read.
[[nodiscard]] int refuse_cells(const Invocation& typed, const Error& error);

}  // namespace sbx::cli
