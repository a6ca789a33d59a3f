#pragma once

#include "cli/invocation.hpp"

namespace sbx::cli {

/// `sbx why [RECORD]`. Returns the exit status.
[[nodiscard]] int why_command(const Invocation& typed);

}  // namespace sbx::cli
