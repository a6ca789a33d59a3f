#include "session/worker_state.hpp"
#pragma once

#include <unistd.h>

#include <array>

/// How a worker gets its calls.
namespace sbx::session {

/// The calls' streams are copied over these; without a call they are the null device.
inline constexpr std::array kCallStreams{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};

/// Makes the next call's control group and init ready, and waits for the call. False: there is
/// none.
[[nodiscard]] bool take_call(WorkerState& state);
/// Closes what belongs to a call.
void forget_call(WorkerState& state);

}  // namespace sbx::session
