#pragma once

#include "cli/invocation.hpp"
#include "host/host.hpp"

namespace sbx::cli {

/// Runs what was typed as a call in the session NAME, and delivers its record. Returns the exit status.
[[nodiscard]] int session_exec(const Invocation& typed, const host::Host& host,
                               const std::string& name);

}  // namespace sbx::cli
