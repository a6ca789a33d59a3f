#pragma once

#include "cli/invocation.hpp"

namespace sbx::cli {

/// `sbx changes list · show · diff · apply · drop`: sbx-changes(1). Returns the exit status.
int changes_command(const Invocation& typed);

}  // namespace sbx::cli
