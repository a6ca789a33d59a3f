#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include <sbx/units.hpp>

#include "base/budgets.hpp"
#include "base/result.hpp"
#include "base/tree_counters.hpp"
#include "host/host.hpp"

namespace sbx::cgroup {

/// A control group for one sandbox, made and still empty. Its destructor removes it: by then the
/// sandbox must be reaped.
class Group : public TreeCounters {
 public:
  /// Errors: setup (a file that was writable refuses the value).
  /// Of `budgets`: memory (tmpfs, page tables and what else the kernel holds for the tree included;
  /// swap 0), processes (tasks; `of_sbx` more may be there, which are its own), cpus.
  [[nodiscard]] virtual Status limit(const Budgets& budgets, std::uint64_t of_sbx) = 0;

  /// The directory for CLONE_INTO_CGROUP; -1: PID 1 joins after the clone.
  [[nodiscard]] virtual int directory() const = 0;
  /// Borrowed descriptors of the files that a thread writes "0" to in order to join (`tasks` of
  /// cgroup v1): a thread that moves itself takes no lock of its whole process, so no RCU grace
  /// period passes as it does when another process is moved (since Linux 5.5; 7 to 12 ms on an idle
  /// 6.18 against 0.1 ms). Empty where the clone does it.
  [[nodiscard]] virtual std::vector<int> joins() const = 0;

  /// Call it before limit() and before the sandbox starts: groups can then be made inside, one for
  /// each call. A kill for lack of memory ends one call, not the sandbox. Errors: setup.
  [[nodiscard]] virtual Status hold() = 0;
  /// A group inside a held one, without limits of its own. It must be destroyed first. Errors:
  /// host.
  [[nodiscard]] virtual Result<std::unique_ptr<Group>> make_inner() = 0;
  /// Borrowed: what a process that makes groups inside needs of this one.
  [[nodiscard]] virtual std::vector<int> descriptors() const = 0;
  /// Removes the groups inside that a dead process made and left.
  virtual void sweep_inner() = 0;
  /// Bytes that the kernel can't take back without ending a process: memory of processes, files in
  /// memory, and what the kernel holds for them.
  [[nodiscard]] virtual std::uint64_t memory_held() const = 0;
  /// Call it when a call or a cell begins in a group inside: memory_limit_met() then tells of what
  /// comes, not that an earlier call met the limit of the group around.
  virtual void forget_memory_limit() = 0;
  /// Moves a process into this group; only where joins() is empty (cgroup v2). Errors: setup.
  [[nodiscard]] virtual Status move(pid_t pid) = 0;
};

}  // namespace sbx::cgroup
