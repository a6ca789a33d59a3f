#pragma once

#include "session/worker_state.hpp"

namespace sbx::session {

/// Takes calls from the session, one after another: runs each, supervises it, answers its client
/// and reports to the session. Ends when the session closes the link. `state` begins without a
/// call.
[[noreturn]] void work(WorkerState state);

}  // namespace sbx::session
