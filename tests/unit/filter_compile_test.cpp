#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#include "base/control.hpp"
#include "filter_support.hpp"
#include "plan/filter/outside.hpp"

namespace sbx::plan {
namespace {

using policy::SyscallBase;
using test::ask;
using test::item;
using test::kAllow;
using test::kKill;
using test::kNotify;
using test::kPlain;
using test::quiet_answer;
using test::syscalls;
using test::Words;

Filter compiled(const policy::Syscalls& rules, const FilterContext& context = kPlain) {
  Result<Filter> filter = compile_filter(rules, context);
  EXPECT_TRUE(filter.has_value()) << (filter ? "" : filter.error().text());
  if (!filter) return {};
  EXPECT_TRUE(test::is_valid_bpf(filter->program));
  return std::move(*filter);
}

// The table's decision about a number if all arguments are zero and the call has no guard.
std::uint32_t wanted(const Call& call, Standing last) {
  switch (call.decision.standing) {
    case Standing::quiet:
    case Standing::absent:
      return quiet_answer(call.decision.quiet_errno);
    case Standing::denied:
      return kNotify;
    default:
      return call.decision.standing <= last ? kAllow : kNotify;
  }
}

TEST(CompileFilter, AnswersEveryNumberAsTheTableSays) {
  const std::pair<SyscallBase, Standing> bases[] = {{SyscallBase::none, Standing::own},
                                                    {SyscallBase::minimal, Standing::minimal},
                                                    {SyscallBase::default_, Standing::standard}};
  for (const auto& [base, last] : bases) {
    const Filter filter = compiled(syscalls(base));
    EXPECT_TRUE(filter.notifies);
    for (std::uint32_t number = 0; number < 1024; ++number) {
      const Call* call = find_call(static_cast<int>(number));
      const std::uint32_t action = ask(filter.program, number).action;
      if (call == nullptr) {
        EXPECT_EQ(action, quiet_answer(ENOSYS)) << number;
      } else if (call->decision.guard == ArgumentGuard::none || call->decision.standing > last) {
        EXPECT_EQ(action, wanted(*call, last)) << call->name;
      }
    }
  }
}

// The audited list once more, by name only: so moving a call into or out of a base takes a change
// in two places.
TEST(CompileFilter, AdmitsExactlyTheCheckedInLists) {
  const std::pair<SyscallBase, std::string> bases[] = {{SyscallBase::none, "none"},
                                                       {SyscallBase::minimal, "minimal"},
                                                       {SyscallBase::default_, "default"}};
  std::ifstream file(SBX_ALLOWED_LIST);
  std::set<std::string> listed;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (test::is_here(std::string_view(line).substr(line.find(' ') + 1))) listed.insert(line);
  }
  ASSERT_GT(listed.size(), 100U);
  std::set<std::string> admitted;
  std::set<std::string_view> seen;
  for (const auto& [base, name] : bases) {
    const Filter filter = compiled(syscalls(base));
    for (const Call& call : calls()) {
      // A guarded call counts if some arguments pass: zero, AF_UNIX, CLONE_THREAD.
      const bool passes = std::ranges::any_of(
          std::initializer_list<std::uint64_t>{0, 1, 0x10000}, [&](std::uint64_t first) {
            return ask(filter.program, call.number, {first}).action == kAllow;
          });
      if (passes && seen.insert(call.name).second) admitted.insert(name + " " + call.name);
    }
  }
  EXPECT_EQ(admitted, listed);
}

TEST(CompileFilter, KillsForeignArchitecturesAndX32) {
  const Filter filter = compiled(syscalls());
  const std::uint32_t other =
      kAuditArch == AUDIT_ARCH_X86_64 ? AUDIT_ARCH_AARCH64 : AUDIT_ARCH_X86_64;
  for (const std::uint32_t arch :
       {std::uint32_t{AUDIT_ARCH_I386}, std::uint32_t{AUDIT_ARCH_ARM}, other, 0U, ~0U}) {
    for (const std::uint32_t number : {0U, 1U, 59U, 102U, 1000U}) {
      EXPECT_EQ(ask(filter.program, number, {}, arch).action, kKill);
    }
  }
  for (const std::uint32_t number :
       {0x40000000U, 0x40000001U, 0x40000200U, 0x7fffffffU, 0x80000000U, 0xfffffffeU}) {
    EXPECT_EQ(ask(filter.program, number).action, kKill) << number;
  }
  EXPECT_EQ(filter.program[0].code, BPF_LD | BPF_W | BPF_ABS);
  EXPECT_EQ(filter.program[0].k, offsetof(seccomp_data, arch));
  EXPECT_EQ(ask(filter, "read"), kAllow);
}

TEST(CompileFilter, AnswersNumbersThatNobodyKnowsLikeAKernelWithoutThem) {
  const Filter filter = compiled(syscalls());
  for (const std::uint32_t number :
       {337U, 400U, 470U, 471U, 512U, 1023U, 0x3fffffffU, 0xffffffffU}) {
    EXPECT_EQ(ask(filter.program, number).action, quiet_answer(ENOSYS)) << number;
  }
}

TEST(CompileFilter, AdmitsTheLastCallsOfSbxInEveryBase) {
  for (const SyscallBase base : {SyscallBase::none, SyscallBase::minimal, SyscallBase::default_}) {
    for (const bool listener : {true, false}) {
      FilterContext context = kPlain;
      context.listener = listener;
      const Filter filter = compiled(syscalls(base), context);
      for (const char* name :
           {"write", "execve", "exit_group", "rt_sigreturn", "restart_syscall"}) {
        EXPECT_EQ(ask(filter, name, {~0U, ~0U, ~0U, ~0U, ~0U, ~0U}), kAllow) << name;
      }
    }
  }
}

TEST(CompileFilter, KeepsHotCallsOnTheKernelsBitmap) {
  policy::Syscalls rules = syscalls();
  rules.rules.push_back(
      test::rule("fcntl", 1, policy::RuleOperator::eq, {1024}, policy::RuleAction::deny));
  const Filter filter = compiled(rules);
  int hot = 0;
  for (const Call& call : calls()) {
    if (!is_hot(call)) continue;
    ++hot;
    const test::BpfResult result = ask(filter.program, call.number);
    EXPECT_EQ(result.action, kAllow) << call.name;
    EXPECT_FALSE(result.looked_at_arguments) << call.name;
  }
  EXPECT_GE(hot, 28);
  EXPECT_TRUE(ask(filter.program, find_call("fcntl")->number)
                  .looked_at_arguments);  // the twin: it has a rule
}

TEST(CompileFilter, GivesHotCallsARuleWhereFilesReachTheHostAlone) {
  FilterContext context = kPlain;
  context.files_reach_host = true;
  const Filter filter = compiled(syscalls(), context);
  for (const Call& call : calls()) {
    if (!is_hot(call)) continue;
    const bool makes_files = call.decision.guard == ArgumentGuard::new_mode;
    EXPECT_EQ(ask(filter.program, call.number).looked_at_arguments, makes_files) << call.name;
  }
}

TEST(CompileFilter, StaysSmallAndShallow) {
  const Filter filter = compiled(syscalls());
  EXPECT_LT(filter.program.size(), 400U);
  for (std::uint32_t number = 0; number < 480; ++number)
    EXPECT_LT(ask(filter.program, number).steps, 30) << number;
}

TEST(CompileFilter, AnswersInTheKernelWithoutAListener) {
  FilterContext context = kPlain;
  context.listener = false;
  const Filter filter = compiled(syscalls(), context);
  EXPECT_FALSE(filter.notifies);
  EXPECT_EQ(ask(filter, "ptrace"), quiet_answer(EPERM));
  EXPECT_EQ(ask(filter, "socket", {17, 3, 0}), quiet_answer(EAFNOSUPPORT));
  EXPECT_EQ(ask(filter, "getpid"), kAllow);

  policy::Syscalls kill = syscalls();
  kill.denied.value = policy::DeniedCall::kill;
  EXPECT_EQ(ask(compiled(kill, context), "ptrace"), kKill);
  EXPECT_EQ(ask(compiled(kill, context), "clone3"), quiet_answer(ENOSYS));
  EXPECT_EQ(ask(compiled(kill), "ptrace"), kNotify);  // with a listener the supervisor ends the run
}

TEST(CompileFilter, FollowsTheMachine) {
  FilterContext context = kPlain;
  EXPECT_EQ(ask(compiled(syscalls(), context), "sched_setaffinity"), kAllow);
  EXPECT_EQ(ask(compiled(syscalls(), context), "memfd_create"), kAllow);
  EXPECT_EQ(ask(compiled(syscalls(), context), "shmget"), kAllow);
  EXPECT_EQ(ask(compiled(syscalls(), context), "socket", {1, 1, 0}), kAllow);
  context.affinity_is_budget = true;
  context.memory_is_polled = true;
  context.unix_sockets = false;
  EXPECT_EQ(ask(compiled(syscalls(), context), "sched_setaffinity"), quiet_answer(EPERM));
  EXPECT_EQ(ask(compiled(syscalls(), context), "memfd_create"), quiet_answer(ENOSYS));
  EXPECT_EQ(ask(compiled(syscalls(), context), "shmget"), quiet_answer(ENOSYS));
  EXPECT_EQ(ask(compiled(syscalls(), context), "msgget"), quiet_answer(ENOSYS));
  EXPECT_EQ(ask(compiled(syscalls(), context), "semget"), quiet_answer(ENOSYS));
  EXPECT_EQ(ask(compiled(syscalls(), context), "socket", {1, 1, 0}), kNotify);
  EXPECT_EQ(ask(compiled(syscalls(), context), "socketpair", {1, 1, 0}), kAllow);
  EXPECT_EQ(ask(compiled(syscalls(), context), "socket", {2, 1, 0}), kAllow);

  policy::Syscalls named = syscalls();
  named.allow = {item("memfd_create"), item("shmget"), item("sched_setaffinity"), item("socket")};
  EXPECT_EQ(ask(compiled(named, context), "memfd_create"), kAllow);
  EXPECT_EQ(ask(compiled(named, context), "shmget"), kAllow);
  EXPECT_EQ(ask(compiled(named, context), "sched_setaffinity"), quiet_answer(EPERM));
  EXPECT_EQ(ask(compiled(named, context), "socket", {1, 1, 0}), kNotify);
}

TEST(CompileFilter, NothingWatchesTheCallersProc) {
  FilterContext context = kPlain;
  policy::Syscalls named = syscalls();
  named.allow = {item("inotify_add_watch"), item("@fanotify")};
  named.rules = {test::rule("inotify_init1", 0, policy::RuleOperator::eq, {7})};
  EXPECT_EQ(ask(compiled(named), "inotify_add_watch"), kAllow);
  EXPECT_EQ(ask(compiled(named), "fanotify_mark"), kAllow);
  EXPECT_EQ(ask(compiled(syscalls()), "fanotify_mark"), kNotify);
  context.shows_outer_proc = true;
  for (const policy::Syscalls& rules : {syscalls(), named})
    for (const char* const call : {"inotify_init1", "inotify_add_watch"})
      EXPECT_EQ(ask(compiled(rules, context), call, {7}), quiet_answer(ENOSYS)) << call;
  EXPECT_EQ(ask(compiled(named, context), "fanotify_init"), quiet_answer(ENOSYS));
  EXPECT_EQ(ask(compiled(named, context), "fanotify_mark"), quiet_answer(ENOSYS));
  EXPECT_EQ(ask(compiled(syscalls(), context), "fanotify_mark"), kNotify);
}

TEST(CompileFilter, WhereWritesArePolledNoneIsOverlooked) {
  FilterContext context = kPlain;
  EXPECT_EQ(ask(compiled(syscalls(), context), "fallocate"), kAllow);
  EXPECT_EQ(ask(compiled(syscalls(), context), "prctl", {PR_SET_DUMPABLE, 0}), kAllow);
  context.writes_are_polled = true;
  EXPECT_EQ(ask(compiled(syscalls(), context), "fallocate"), quiet_answer(EOPNOTSUPP));
  for (const std::uint64_t reserve : Words{0x40305828, 0x4030582a, 0x40305839}) {
    EXPECT_EQ(ask(compiled(syscalls(), context), "ioctl", {3, reserve}), quiet_answer(EOPNOTSUPP));
    EXPECT_EQ(ask(compiled(syscalls()), "ioctl", {3, reserve}), kAllow);
  }
  EXPECT_EQ(ask(compiled(syscalls(), context), "prctl", {PR_SET_DUMPABLE, 0}), kNotify);
  EXPECT_EQ(ask(compiled(syscalls(), context), "prctl", {PR_SET_DUMPABLE, 1}), kAllow);
  EXPECT_EQ(ask(compiled(syscalls(), context), "prctl", {PR_SET_NAME, 0}), kAllow);
  EXPECT_EQ(ask(compiled(syscalls(), context), "prctl", {PR_SET_MM, 0}), kNotify);

  policy::Syscalls named = syscalls();
  named.allow = {item("fallocate"), item("prctl")};
  EXPECT_EQ(ask(compiled(named, context), "fallocate"), kAllow);
  EXPECT_EQ(ask(compiled(named, context), "prctl", {PR_SET_DUMPABLE, 0}), kAllow);
}

TEST(CompileFilter, OutsideOfNamespacesNothingThatReachesOthersCanBeAllowed) {
  FilterContext context = kPlain;
  policy::Syscalls named = syscalls();
  named.allow = {item("@ipc"),       item("@debug"),       item("@keyring"), item("socket"),
                 item("socketpair"), item("setpriority"),  item("prctl"),    item("clone3"),
                 item("ioprio_set"), item("inotify_init1")};
  for (const char* const call : {"shmget", "ptrace", "keyctl", "inotify_init1", "clone3"})
    EXPECT_EQ(ask(compiled(named, context), call), kAllow) << call;
  context.outside_namespaces = true;
  context.unix_sockets = context.internet_sockets = false;
  const auto filter = compiled(named, context);
  for (const char* const call : {"shmget", "mq_open", "inotify_init1", "clone3"})
    EXPECT_EQ(ask(filter, call), quiet_answer(ENOSYS)) << call;
  for (const char* const call : {"ptrace", "process_vm_readv", "keyctl", "pidfd_getfd"})
    EXPECT_EQ(ask(filter, call), kNotify) << call;
  EXPECT_EQ(ask(filter, "socket", {AF_UNIX, SOCK_STREAM}), quiet_answer(EAFNOSUPPORT));
  for (const std::uint64_t family : Words{AF_INET, AF_INET6, AF_NETLINK})
    EXPECT_EQ(ask(filter, "socket", {family, SOCK_STREAM}), kNotify) << family;
  EXPECT_EQ(ask(filter, "socketpair", {AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC}), kAllow);
  for (const std::uint64_t type : Words{SOCK_DGRAM, SOCK_RAW})
    EXPECT_EQ(ask(filter, "socketpair", {AF_UNIX, type}), kNotify) << type;
  EXPECT_EQ(ask(filter, "setpriority", {PRIO_PROCESS, 0, 5}), kAllow);
  EXPECT_EQ(ask(filter, "setpriority", {PRIO_PROCESS, 7, 5}), kNotify);
  EXPECT_EQ(ask(filter, "sched_setscheduler", {7}), kNotify);
  EXPECT_EQ(ask(filter, "ioprio_set", {1, 7}), kNotify);
  EXPECT_EQ(ask(filter, "ioprio_set", {1, 0}), kAllow);
  // 0 is also the caller's own group, and its user, which others have too.
  EXPECT_EQ(ask(filter, "setpriority", {PRIO_USER, 0, 5}), kNotify);
  EXPECT_EQ(ask(filter, "ioprio_set", {3, 0}), kNotify);
  EXPECT_EQ(ask(filter, "prlimit64", {0, 1, 0x1000}), kAllow);
  EXPECT_EQ(ask(filter, "prlimit64", {7, 1, 0}), kNotify);
  EXPECT_EQ(ask(filter, "file_setattr"), quiet_answer(ENOSYS));
  EXPECT_EQ(ask(filter, "prctl", {PR_SET_DUMPABLE, 0}), kNotify);
  EXPECT_EQ(ask(filter, "prctl", {PR_SET_DUMPABLE, 1}), kAllow);
}

TEST(CompileFilter, OutsideOfNamespacesUnixSocketsThatCanNameNobodyElseAreMadeByTheSupervisor) {
  FilterContext context = kPlain;
  context.outside_namespaces = context.named_sockets = true;
  context.unix_sockets = context.internet_sockets = false;
  context.served.assign(plan::served_sockets().begin(), plan::served_sockets().end());
  policy::Syscalls named = syscalls();
  named.allow = {item("socket"), item("connect"), item("bind"), item("setsockopt")};
  for (const auto& policy : {syscalls(), named}) {
    const auto filter = compiled(policy, context);
    for (const std::uint64_t type : Words{SOCK_STREAM, SOCK_SEQPACKET | SOCK_CLOEXEC})
      EXPECT_EQ(ask(filter, "socket", {AF_UNIX, type}), kNotify) << type;
    for (const std::uint64_t type : Words{SOCK_DGRAM, SOCK_RAW | SOCK_NONBLOCK})
      EXPECT_EQ(ask(filter, "socket", {AF_UNIX, type}), quiet_answer(ESOCKTNOSUPPORT)) << type;
    EXPECT_EQ(ask(filter, "connect", {3, 0x1000, 110}), kNotify);
    EXPECT_EQ(ask(filter, "bind", {3, 0x1000, 110}), kNotify);
    EXPECT_EQ(ask(filter, "listen", {3, 8}), kAllow);
    // By which a connect(2) gives a socket an abstract name.
    for (const std::uint64_t option : Words{SO_PASSCRED, 76})
      EXPECT_EQ(ask(filter, "setsockopt", {3, SOL_SOCKET, option}), quiet_answer(ENOPROTOOPT));
    EXPECT_EQ(ask(filter, "setsockopt", {3, SOL_SOCKET, SO_SNDBUF}), kAllow);
    EXPECT_EQ(ask(filter, "setsockopt", {3, SOL_SOCKET + 1, SO_PASSCRED}), kAllow);
  }
  context.listener = false;
  for (const char* const call : {"connect", "bind"})
    EXPECT_NE(ask(compiled(named, context), call, {3, 0x1000, 110}), kAllow) << call;
}

TEST(CompileFilter, OutsideOfNamespacesRequestsThatChangeFilesAreRefused) {
  FilterContext context = kPlain;
  context.outside_namespaces = true;
  policy::Syscalls named = syscalls();
  named.allow = {item("ioctl")};
  for (const auto& policy : {syscalls(), named}) {
    const auto filter = compiled(policy, context);
    // Of terminals, sockets and copies.
    for (const std::uint64_t request : Words{0x5401, 0x541b, 0x80045430, 0x8913, 0x40049409})
      EXPECT_EQ(ask(filter, "ioctl", {3, request}), kAllow) << request;
    // Flags, versions and project ids of inodes, fs-verity, snapshots, others' namespaces.
    for (const std::uint64_t request :
         Words{0x40086602, 0x40087602, 0x401c5820, 0x40806685, 0x50009401, 0xff0b})
      EXPECT_EQ(ask(filter, "ioctl", {3, request}), quiet_answer(ENOTTY)) << request;
    EXPECT_EQ(ask(filter, "ioctl", {0, 0x5412}), kNotify);  // TIOCSTI
  }
}

TEST(CompileFilter, OutsideOfNamespacesLeasesAndWatchedDirectoriesAreRefused) {
  FilterContext context = kPlain;
  EXPECT_EQ(ask(compiled(syscalls(), context), "fcntl", {3, F_SETLEASE}), kAllow);
  context.outside_namespaces = true;
  const auto filter = compiled(syscalls(), context);
  for (const std::uint64_t form : Words{F_SETLEASE, F_NOTIFY})
    EXPECT_EQ(ask(filter, "fcntl", {3, form}), quiet_answer(EINVAL)) << form;
  for (const std::uint64_t form : Words{F_GETFL, F_SETLK, F_DUPFD_CLOEXEC, F_ADD_SEALS})
    EXPECT_EQ(ask(filter, "fcntl", {3, form}), kAllow) << form;
}

TEST(CompileFilter, WhereReadingTruncatesNoFormOfItIsAllowed) {
  FilterContext context = kPlain;
  context.truncates_unasked = true;
  EXPECT_EQ(ask(compiled(syscalls(), context), "truncate"), kAllow);  // mounts are read-only
  context.outside_namespaces = true;
  policy::Syscalls named = syscalls();
  named.allow = {item("open"), item("openat"), item("openat2"), item("truncate")};
  for (const auto& policy : {syscalls(), named}) {
    const auto filter = compiled(policy, context);
    EXPECT_EQ(ask(filter, "truncate"), quiet_answer(EPERM));
    EXPECT_EQ(ask(filter, "openat2"), quiet_answer(ENOSYS));
    EXPECT_EQ(ask(filter, "ftruncate"), kAllow);
    for (const std::uint64_t access : Words{O_RDONLY, O_ACCMODE, O_RDONLY | O_CREAT | O_CLOEXEC})
      EXPECT_EQ(ask(filter, "openat", {0, 0, access | O_TRUNC}), quiet_answer(EINVAL)) << access;
    for (const std::uint64_t flags :
         Words{O_RDONLY, O_ACCMODE, O_WRONLY | O_TRUNC, O_RDWR | O_CREAT | O_TRUNC})
      EXPECT_EQ(ask(filter, "openat", {0, 0, flags}), kAllow) << flags;
  }
  EXPECT_EQ(plan::allowed_in_vain(compiled(named, context)),
            (std::vector<std::string>{"openat2", "truncate"}));
}

TEST(FilterServed, CallsThatTheSupervisorAnswersAreNeverAllowedWithoutIt) {
  FilterContext context = kPlain;
  context.served.assign(plan::served_outside().begin(), plan::served_outside().end());
  context.served.insert(context.served.end(), plan::served_tasks().begin(),
                        plan::served_tasks().end());
  for (const char* const call : {"fchmod", "fchmodat2", "fchownat", "utimensat", "clone"}) {
    EXPECT_EQ(ask(compiled(syscalls()), call), kAllow) << call;
    EXPECT_EQ(ask(compiled(syscalls(), context), call), kNotify) << call;
    FilterContext without = context;
    without.listener = false;
    EXPECT_EQ(ask(compiled(syscalls(), without), call), quiet_answer(EPERM)) << call;
  }
  EXPECT_EQ(test::explain(compiled(syscalls(), context), "fchmod").errno_value, 0);
  policy::Syscalls denying = syscalls();
  denying.deny = {item("fchmod")};
  EXPECT_EQ(test::explain(compiled(denying, context), "fchmod").errno_value, EPERM);
}

TEST(FilterNoted, CallsThatAreAllowedAreNotifiedAndExplainedAsAllowed) {
  plan::FilterContext context = kPlain;
  context.noted = {test::number_of("connect")};
  const auto filter = plan::compile_filter(syscalls(), context);
  ASSERT_TRUE(filter);
  EXPECT_EQ(ask(*filter, "connect"), kNotify);
  EXPECT_EQ(test::explain(*filter, "connect").errno_value, 0);
  EXPECT_EQ(ask(*filter, "bind"), kAllow);
  EXPECT_TRUE(filter->notifies);
}

TEST(FilterNoted, ADeniedCallStaysDeniedAndARuleOnArgumentsDecidesStill) {
  plan::FilterContext context = kPlain;
  context.noted = {test::number_of("connect")};
  policy::Syscalls denying = syscalls();
  denying.deny = {item("connect")};
  const auto denied = plan::compile_filter(denying, context);
  ASSERT_TRUE(denied);
  EXPECT_EQ(ask(*denied, "connect"), kNotify);
  EXPECT_EQ(test::explain(*denied, "connect").errno_value, EPERM);

  policy::Syscalls ruled = syscalls();
  ruled.rules = {test::rule("connect", 0, policy::RuleOperator::eq, {7}, policy::RuleAction::deny)};
  const auto filter = plan::compile_filter(ruled, context);
  ASSERT_TRUE(filter);
  EXPECT_EQ(test::explain(*filter, "connect", {7}).errno_value, EPERM);
  EXPECT_EQ(test::explain(*filter, "connect", {8}).errno_value, 0);
  EXPECT_EQ(ask(*filter, "connect", {8}), kNotify);
}

TEST(FilterNoted, ThePayloadsOwnExecveIsNeverNotifiedBecauseNobodyCouldTakeIt) {
  plan::FilterContext context = kPlain;
  context.noted = {test::number_of("execve"), test::number_of("execveat")};
  const auto filter = plan::compile_filter(syscalls(), context);
  ASSERT_TRUE(filter);
  EXPECT_EQ(ask(*filter, "execve", {1, 2, 3, control::kOwnExec}), kAllow);
  EXPECT_EQ(ask(*filter, "execve", {1, 2, 3, 0}), kNotify);
  EXPECT_EQ(ask(*filter, "execveat", {1, 2, 3, control::kOwnExec}), kNotify);

  policy::Syscalls ruled = syscalls();
  ruled.rules = {test::rule("execve", 4, policy::RuleOperator::eq, {7}, policy::RuleAction::deny)};
  const auto conditional = plan::compile_filter(ruled, context);
  if (conditional) {
    EXPECT_EQ(ask(*conditional, "execve", {1, 2, 3, control::kOwnExec}), kAllow);
  }
}

TEST(FilterNoted, WithoutAListenerTheyAreOnlyAllowed) {
  plan::FilterContext context = kPlain;
  context.noted = {test::number_of("connect")};
  context.listener = false;
  const auto filter = plan::compile_filter(syscalls(), context);
  ASSERT_TRUE(filter);
  EXPECT_EQ(ask(*filter, "connect"), kAllow);
}

}  // namespace
}  // namespace sbx::plan
