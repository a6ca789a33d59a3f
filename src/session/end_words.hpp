#pragma once

#include "session/worker_protocol.hpp"

/// Why the session has ended a call or a context, for a person. Null: whoever did it knows it.
namespace sbx::session {

[[nodiscard]] const char* words_of_end(EndCause cause);

}  // namespace sbx::session
