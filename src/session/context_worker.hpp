#include "session/worker_state.hpp"
#pragma once

namespace sbx::session {

/// The process of one context: starts the interpreter with its driver, supervises it to its end,
/// and runs cells in it, one after the other. Of the state's request it uses "language", "context"
/// and "lost" (state was lost before); cells arrive on the link.
[[noreturn]] void work_as_context(WorkerState state);

}  // namespace sbx::session
