#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/result.hpp"
#include "policy/policy.hpp"

/// Compiles a policy's [syscalls] to the BPF program that the payload installs. Pure.
namespace sbx::plan {

/// What machine and plan add to the policy's own rules.
struct FilterContext {
  bool listener = true;  ///< denied calls are notified; false: the kernel answers, unreported
  bool affinity_is_budget = true;  ///< no cgroup: sched_setaffinity fails with EPERM, no denial
  /// False: socket(AF_UNIX) is denied (host network without Landlock scopes).
  bool unix_sockets = true;
  /// memfd_create, shmget, semget and msgget fail with ENOSYS, without a denial, unless granted by
  /// name: polling doesn't see memory that no process has mapped.
  bool memory_is_polled = true;
  /// Writes into live grants are measured by polling the processes. fallocate and the equivalent
  /// ioctls, which no process's count includes, fail with EOPNOTSUPP without a denial, and becoming
  /// non-dumpable is denied.
  bool writes_are_polled = false;
  /// There is a live grant, nosuid and nodev only inside, or the program has the caller's own uid
  /// and no mounts: set-user-ID and set-group-ID modes and device nodes are denied.
  bool files_reach_host = false;
  /// Landlock can't keep FIFOs and sockets out of the live grants: mknod is denied altogether.
  bool special_files_reach_host = false;
  /// /proc is the caller's, behind Landlock, which restricts no watches (inotify, fanotify): each
  /// of their calls fails with ENOSYS without a denial, whatever the policy allows.
  bool shows_outer_proc = false;
  /// The program is in the machine's own namespaces: what reaches through them is refused, whatever
  /// the policy allows (outside.hpp).
  bool outside_namespaces = false;
  /// Landlock has no right for it (below ABI 3): whoever may write a file empties it through a path
  /// that is closed to him, by truncate(2) or by an open(2) that reads. Outside of namespaces these
  /// are refused, and openat2(2), whose flags no filter sees.
  bool truncates_unasked = false;
  bool internet_sockets = true;  ///< false: none can be made, whatever the policy allows
  /// Outside of namespaces: the supervisor makes, connects and binds the unix sockets of the types
  /// STREAM and SEQPACKET, whose messages name no other peer (served_sockets()). False: none but
  /// pairs.
  bool named_sockets = false;
  /// Numbers of allowed calls that are notified for the record: the supervisor looks at them and
  /// lets them continue. Ignored without a listener.
  std::vector<int> noted{};
  /// Numbers of allowed calls that the supervisor answers itself, or lets continue: never allowed
  /// without it (served_outside()).
  std::vector<int> served{};
};

/// A refused call, for the record: what, rule, allow_with and risk.
struct Refusal : Denial {
  int errno_value = 0;  ///< errno for the program; 0: the call is not refused
};

struct Filter {
  std::vector<sock_filter> program;
  bool notifies = false;  ///< a listener is needed
  /// Explains the refusal of this call from its number and argument registers alone (memory is
  /// never read). Callers must bound how many different `what` texts they keep: a program can
  /// invent families and options.
  [[nodiscard]] Refusal explain(int number, const std::uint64_t (&arguments)[6]) const;
  /// The errno of explain(), without its texts.
  [[nodiscard]] int refusal_errno(int number, const std::uint64_t (&arguments)[6]) const;

  policy::Syscalls syscalls;  ///< kept for the origins
  FilterContext context;
};

/// Compiles the filter. Errors: policy (unknown name, group or symbol; a denied call that sbx
/// needs; a rule on a hot call, on an argument that the call lacks, or that can never match; rules
/// that exceed 4,096 instructions). Each error names the rule.
///
/// Precedence: syscalls.deny and unconditional deny rules; deny rules that match; the call's own
/// guard; allow. An allow by the call's name lifts its guard, an allow by group does not. An allow
/// rule with eq or in lifts only the guard's check of that argument. Never lifted: namespace flags
/// of clone, the guards of ioctl and prlimit64 (by name), affinity_is_budget, unix_sockets,
/// shows_outer_proc.
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

/// One line of the table, for documentation and completions.
struct SyscallText {
  int number = 0;
  std::string_view name;
  std::string_view group;
  std::string_view standing;  ///< "always", "minimal", "default", "denied", "quiet" or "absent"
  bool guarded = false;       ///< allowed under a condition on its arguments
  std::string_view reason;
};
[[nodiscard]] std::vector<SyscallText> syscall_table();

}  // namespace sbx::plan
