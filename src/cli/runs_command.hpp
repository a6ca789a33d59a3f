#pragma once

#include "cli/invocation.hpp"

/// `sbx ps` and `sbx stop`: the runs of this user that are under way.
namespace sbx::cli {

/// Returns the exit status: 0; 1 if a run could not be ended; 2 for wrong use; 125.
int runs_command(const Invocation& typed);

}  // namespace sbx::cli
