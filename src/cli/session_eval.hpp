#pragma once

#include "cli/invocation.hpp"
#include "host/host.hpp"

namespace sbx::cli {

/// `sbx session eval`: one cell, from what was typed to its exit status.
[[nodiscard]] int session_eval(const Invocation& typed, const host::Host& host);

}  // namespace sbx::cli
