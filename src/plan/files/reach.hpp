#pragma once

#include <span>
#include <vector>

#include "plan/access.hpp"
#include "plan/mount.hpp"

namespace sbx::plan {

/// What the program reaches through these mounts. The first is the root: everything may be read and
/// executed, as far as the attributes of the mounts permit. With the caller's /proc it is each part
/// of the root but that, and the files of it that tell nothing of others. Steps that cover or fix a
/// part of an earlier one add nothing.
[[nodiscard]] std::vector<Access> reached_through(const std::vector<Mount>& mounts);

/// The files of the caller's /proc that tell of the machine and not of its processes.
[[nodiscard]] std::span<const char* const> open_in_outer_proc();

/// True if /proc is the caller's.
[[nodiscard]] bool shows_outer_proc(const std::vector<Mount>& mounts);

}  // namespace sbx::plan
