#pragma once

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace sbx::session {

/// This program in a sealed file in memory, to be executed inside a sandbox, which does not show
/// its file on the host. Errors: host (no memory; executable files in memory are forbidden,
/// vm.memfd_noexec).
[[nodiscard]] Result<UniqueFd> own_image();

}  // namespace sbx::session
