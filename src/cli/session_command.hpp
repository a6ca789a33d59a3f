#pragma once

#include "cli/invocation.hpp"
#include "cli/run_command.hpp"

namespace sbx::cli {

/// `sbx session ...`. Returns the exit status.
[[nodiscard]] int session_command(const Invocation& typed, const OwnProcess& process);

/// `sbx run --session NAME`: a call in that session, which is started first if it isn't there.
[[nodiscard]] int run_in_session(const Invocation& typed, const OwnProcess& process);

}  // namespace sbx::cli
