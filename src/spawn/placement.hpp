#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "base/result.hpp"

namespace sbx::spawn {

/// How PID 1 enters its control group: the clone puts it there (cgroup v2), or it moves itself as
/// its first action (v1).
struct Placement {
  int directory = -1;      ///< for CLONE_INTO_CGROUP
  std::vector<int> joins;  ///< files to write "0" to
  /// A call has this in place of `directory`: it moves the init, which waits for that. The holder
  /// may not clone into a group of the host's: its own cgroup namespace doesn't show that,
  /// cgroup_namespaces(7).
  std::function<Status(pid_t init)> move;
};

}  // namespace sbx::spawn
