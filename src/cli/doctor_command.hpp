#pragma once

#include "cli/invocation.hpp"

namespace sbx::cli {

/// `sbx doctor`. Returns 0 if every requested policy can run here, even if weaker; 1 if one can't.
int doctor_command(const Invocation& typed);

}  // namespace sbx::cli
