#pragma once

#include "cli/invocation.hpp"
#include "host/host.hpp"

namespace sbx::cli {

/// `sbx session eval -i`: reads cells and runs them until the input ends. The context stays. On a
/// terminal lines are edited; otherwise there is no prompt, and the input ends a cell that is not
/// complete.
[[nodiscard]] int session_repl(const Invocation& typed, const host::Host& host);

}  // namespace sbx::cli
