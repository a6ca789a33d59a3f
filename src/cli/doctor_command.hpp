#pragma once

#include "cli/invocation.hpp"

namespace sbx::cli {

/// `sbx doctor`. 0 when every policy that was asked about can run here, by weaker means or not; 1
/// when one can't.
int doctor_command(const Invocation& typed);

}  // namespace sbx::cli
