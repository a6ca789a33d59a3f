#pragma once

#include <vector>

#include "policy/policy.hpp"
#include "policy/warnings.hpp"

namespace sbx::plan {

/// What [syscalls] may say, and hardly anybody means: an allow that a deny of the same file takes back, a base under
/// which no ordinary program starts, and calls whose work no filter sees. Unknown names are another's to report.
[[nodiscard]] std::vector<policy::Warning> call_warnings(const policy::Syscalls& syscalls);

}  // namespace sbx::plan
