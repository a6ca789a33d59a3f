#pragma once

#include "base/result.hpp"
#include "session/worker.hpp"
#include "session/worker_state.hpp"

namespace sbx::session {

/// Forks a process, which does `work` with `state`, and gets its ends of `link` and `ask`. Errors:
/// host "cannot-clone".
[[nodiscard]] Result<Worker> fork_worker(WorkerState state, void (*work)(WorkerState));

}  // namespace sbx::session
