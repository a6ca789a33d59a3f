#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/unique_fd.hpp"
#include "budget/group.hpp"

/// cgroup v1, for a caller with root's rights: groups of the sandbox's own in the memory, pids, cpu
/// and cpuacct hierarchies, below those that sbx runs in.
namespace sbx::budget {

/// A process that makes the groups and puts the sandbox into them, beside everything else
/// that a start does: the first write to cgroup.procs after a while waits for an RCU grace period
/// (5 to 17 ms), the next ones within 10 ms don't. It makes that first write with itself, then waits
/// to be told of PID 1. It ends with its supervisor, and removes what it made if that ended first.
class LegacyAttacher {
 public:
  /// Forks. Errors: setup.
  [[nodiscard]] static Result<LegacyAttacher> start();

  LegacyAttacher(LegacyAttacher&& other) noexcept;
  LegacyAttacher& operator=(LegacyAttacher&&) = delete;
  ~LegacyAttacher() { end(); }

  struct Made {
    std::unique_ptr<Group> group;  ///< null: see `why`
    bool limits_cpus = false;
    host::ControlGroup::Granted granted;
    std::string why;
  };
  /// Waits for the groups to be made. Call once; the group then owns the process.
  [[nodiscard]] static Made wait(LegacyAttacher attacher);

 private:
  friend class LegacyGroup;
  LegacyAttacher(pid_t pid, UniqueFd channel) : pid_(pid), channel_(std::move(channel)) {}

  /// Lets the process go, and reaps it.
  void end();

  pid_t pid_ = -1;
  UniqueFd channel_;
};

}  // namespace sbx::budget
