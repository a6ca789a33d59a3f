#pragma once

#include <cstdint>
#include <string>

#include "cli/invocation.hpp"
#include "cli/run_command.hpp"
#include "session/start.hpp"

namespace sbx::cli {

enum class IfExists : std::uint8_t { is_told, is_not_told };
/// Starts a session with the policy and the options that were typed; `name` may be empty. `owner`:
/// a pidfd, the session stops when that process ends; -1: none. What goes wrong is told on stderr,
/// or all of it but "session-exists".
[[nodiscard]] session::StartAnswer start_session(const Invocation& typed, const OwnProcess& process,
                                                 const std::string& name, int owner = -1,
                                                 IfExists exists = IfExists::is_told);

/// `sbx session start [NAME]`. Returns the exit status.
[[nodiscard]] int start_command(const Invocation& typed, const OwnProcess& process);

/// `sbx run --session NAME`: a call in that session, which is started first if it isn't there.
/// Returns the exit status.
[[nodiscard]] int run_in_session(const Invocation& typed, const OwnProcess& process);

}  // namespace sbx::cli
