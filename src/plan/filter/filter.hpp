#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/result.hpp"
#include "policy/policy.hpp"

/// From a policy's [syscalls] to the BPF program that the payload installs. Pure.
namespace sbx::plan {

/// What the machine and the plan add to the policy's own rules.
struct FilterContext {
  bool listener = true;  ///< denied calls are notified; false: answered in the kernel, unnamed
  bool affinity_is_budget = true;  ///< no cgroup: sched_setaffinity answers EPERM quietly
  bool unix_sockets =
      true;  ///< false: socket(AF_UNIX) is out (network host without Landlock scopes)
  /// memfd_create, shmget, semget and msgget are a quiet ENOSYS unless granted by name: polling processes does not
  /// see memory that none of them has mapped.
  bool memory_is_polled = true;
  /// What is written into live grants is counted by looking at the processes: fallocate and the
  /// ioctls that do the same, which no process's count has, are a quiet EOPNOTSUPP, and to become
  /// unreadable is refused.
  bool writes_are_polled = false;
  /// There is a live grant. The mounts are nosuid and nodev inside alone, so no file gets a
  /// set-user-ID or set-group-ID mode and no device is made.
  bool files_reach_host = false;
  /// Landlock can't keep FIFOs and sockets out of the live grants: mknod makes none at all.
  bool special_files_reach_host = false;
  /// Numbers of calls that are notified where they are allowed: the supervisor looks at them, for
  /// naming, and lets them go on. Without a listener nobody looks.
  std::vector<int> noted{};
};

/// A refused call, for the record: what, rule, allow_with and risk.
struct Refusal : Denial {
  int errno_value = 0;  ///< what the program is told; 0: the call is not refused
};

struct Filter {
  std::vector<sock_filter> program;
  bool notifies = false;  ///< a listener is needed
  /// What is refused about this call, from number and argument registers alone (memory is never
  /// read). Callers bound how many different `what` they keep: a program can make up families and
  /// options.
  [[nodiscard]] Refusal explain(int number, const std::uint64_t (&arguments)[6]) const;
  /// The errno of explain() without its texts.
  [[nodiscard]] int refusal_errno(int number, const std::uint64_t (&arguments)[6]) const;

  policy::Syscalls syscalls;  ///< kept for origins
  FilterContext context;
};

/// Compiles the filter. Errors: policy (unknown name, group or symbol; a call denied that sbx
/// needs; a rule on a hot call, on an argument that the call lacks, or that can never match; rules
/// that don't fit 4,096 instructions: each names the rule).
///
/// The order of say: syscalls.deny and unconditional deny rules; deny rules that match; the call's
/// own guard; allow. An allow by the call's name lifts its guard, an allow by group does not. An
/// allow rule with eq or in lifts only the guard's check of that argument. Never lifted: namespace
/// flags of clone, ioctl and prlimit64's guards (by name), affinity_is_budget, unix_sockets.
[[nodiscard]] Result<Filter> compile_filter(const policy::Syscalls& syscalls,
                                            const FilterContext& context);

/// Name of a system call of this architecture, or "system call N".
[[nodiscard]] std::string syscall_name(int number);

/// A group of system calls, for documentation and completions.
struct SyscallGroup {
  std::string_view name;  ///< "@debug"
  std::string_view description;
  std::vector<std::string_view> members;  ///< by number
};
[[nodiscard]] std::vector<SyscallGroup> syscall_groups();

/// A line of the table, for documentation and completions.
struct SyscallText {
  int number = 0;
  std::string_view name;
  std::string_view group;
  std::string_view standing;  ///< "always", "minimal", "default", "denied", "quiet" or "absent"
  bool guarded = false;       ///< admitted under a condition on its arguments
  std::string_view reason;
};
[[nodiscard]] std::vector<SyscallText> syscall_table();

}  // namespace sbx::plan
