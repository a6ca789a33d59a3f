#pragma once

#include "base/result.hpp"
#include "cli/invocation.hpp"
#include "host/host.hpp"

namespace sbx::cli {

/// `sbx session get`: the exit status. Errors: usage, host, those of the session.
[[nodiscard]] Result<int> get_files(const Invocation& typed, const host::Host& host);

}  // namespace sbx::cli
