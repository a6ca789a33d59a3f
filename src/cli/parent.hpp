#pragma once

#include "base/unique_fd.hpp"

namespace sbx::cli {

/// For --die-with-parent: readable when the process that started this one has ended. A pidfd rather
/// than PR_SET_PDEATHSIG, which follows the parent's thread, prctl(2). A parent that ended earlier
/// is not noticed.
[[nodiscard]] UniqueFd open_parent();

}  // namespace sbx::cli
