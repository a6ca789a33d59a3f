#pragma once

#include <vector>

#include "policy/policy.hpp"
#include "policy/warnings.hpp"

namespace sbx::plan {

/// Warns about [syscalls] settings that are probably mistakes: an allow that a deny of the same
/// file revokes, a base under which no ordinary program starts, calls whose effects no filter sees,
/// and allowed calls that this architecture lacks. Unknown names are reported elsewhere.
[[nodiscard]] std::vector<policy::Warning> call_warnings(const policy::Syscalls& syscalls);

}  // namespace sbx::plan
