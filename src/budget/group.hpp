#pragma once

#include <sys/types.h>

#include <cstdint>

#include <sbx/units.hpp>

#include "base/result.hpp"
#include "base/tree_counters.hpp"
#include "host/host.hpp"

namespace sbx::budget {

/// Budgets of a whole sandbox. Of those that the group can't keep the value is not looked at.
struct Limits {
  Bytes memory{};  ///< tmpfs, page tables and what else the kernel holds for it included; swap 0
  std::uint64_t processes = 0;  ///< tasks, PID 1 of the sandbox not counted
  double cpus = 0;              ///< CPU seconds a second
};

/// A control group for one sandbox, made and still empty. Its destructor removes it: by then the
/// sandbox must be reaped.
class Group : public TreeCounters {
 public:
  /// Errors: setup (a file that was writable refuses the value).
  [[nodiscard]] virtual Status limit(const Limits& limits) = 0;

  /// The folder for CLONE_INTO_CGROUP; -1: the sandbox is attached after the clone.
  [[nodiscard]] virtual int folder() const = 0;
  /// Starts to put a process into the group, which may take milliseconds; then waits for it. Both
  /// do nothing where the clone did it. Errors: setup.
  [[nodiscard]] virtual Status begin_attach(pid_t process) = 0;
  [[nodiscard]] virtual Status end_attach() = 0;
};

}  // namespace sbx::budget
