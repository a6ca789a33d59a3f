#include <gtest/gtest.h>
#include <linux/sched.h>

#include <csignal>

#include "filter_support.hpp"

namespace sbx::plan {
namespace {

using policy::RuleAction;
using policy::RuleOperator;
using policy::SyscallBase;
using test::ask;
using test::explain;
using test::item;
using test::kAllow;
using test::kNotify;
using test::kPlain;
using test::quiet_answer;
using test::rule;
using test::syscalls;

Filter compiled_rules(const policy::Syscalls& rules) {
  return compile_filter(rules, kPlain).value();
}

Error error_of(const policy::Syscalls& rules) {
  const Result<Filter> filter = compile_filter(rules, kPlain);
  EXPECT_FALSE(filter.has_value());
  return filter ? Error{} : filter.error();
}

TEST(FilterRules, GrantNamesAndGroups) {
  policy::Syscalls rules = syscalls();
  EXPECT_EQ(ask(compiled_rules(rules), "ptrace"), kNotify);
  EXPECT_EQ(ask(compiled_rules(rules), "io_uring_setup"), quiet_answer(ENOSYS));
  rules.allow = {item("@debug"), item("io_uring_setup")};
  EXPECT_EQ(ask(compiled_rules(rules), "ptrace"), kAllow);
  EXPECT_EQ(ask(compiled_rules(rules), "process_vm_readv"), kAllow);
  EXPECT_EQ(ask(compiled_rules(rules), "io_uring_setup"), kAllow);
  EXPECT_EQ(ask(compiled_rules(rules), "perf_event_open"), kNotify);
}

struct GroupCase {
  const char* group;
  const char* call;  ///< a member of the group without a rule on its arguments
};

// Allowed by default.
constexpr GroupCase kOpen[] = {
    {"@basic-io", "splice"},
    {"@io-event", "epoll_ctl"},
    {"@file-read", "readahead"},
    {"@file-write", "truncate"},
    {"@file-lock", "flock"},
    {"@sync", "syncfs"},
    {"@memory", "mincore"},
    {"@thread", "get_robust_list"},
    {"@signal", "rt_sigsuspend"},
    {"@timer", "setitimer"},
    {"@scheduling", "setpriority"},
    {"@resources", "setrlimit"},
    {"@process", "setsid"},
    {"@process-spawn", "clone"},
    {"@identity", "setuid"},
    {"@ipc", "semget"},
    {"@network", "connect"},
    {"@system-info", "sysinfo"},
    {"@self-restriction", "landlock_restrict_self"},
};
// Denied by default.
constexpr GroupCase kShut[] = {
    {"@debug", "ptrace"},
    {"@profile", "perf_event_open"},
    {"@aio", "io_submit"},
    {"@io-uring", "io_uring_enter"},
    {"@numa", "mbind"},
    {"@mount", "mount"},
    {"@namespace", "setns"},
    {"@keyring", "keyctl"},
    {"@handle", "open_by_handle_at"},
    {"@fanotify", "fanotify_init"},
    {"@bpf", "bpf"},
    {"@memory-tricks", "userfaultfd"},
    {"@module", "init_module"},
    {"@reboot", "reboot"},
    {"@swap", "swapon"},
    {"@clock", "settimeofday"},
    {"@raw-io", "syslog"},
    {"@privileged", "acct"},
    {"@obsolete", "lookup_dcookie"},
};

TEST(FilterRules, EachGroupThatIsOpenCanBeShut) {
  for (const auto& [group, call] : kOpen) {
    policy::Syscalls rules = syscalls();
    EXPECT_EQ(ask(compiled_rules(rules), call), kAllow) << group;
    rules.deny = {item(group)};
    const auto shut = compile_filter(rules, kPlain);
    if (shut)
      EXPECT_EQ(ask(*shut, call), kNotify) << group;
    else
      EXPECT_EQ(shut.error().code, "needed-syscall-denied") << group;
  }
}

TEST(FilterRules, EachGroupThatIsShutCanBeOpened) {
  for (const auto& [group, call] : kShut) {
    policy::Syscalls rules = syscalls();
    EXPECT_NE(ask(compiled_rules(rules), call), kAllow) << group;
    rules.allow = {item(group)};
    EXPECT_EQ(ask(compiled_rules(rules), call), kAllow) << group;
  }
}

TEST(FilterRules, TheGroupOfWhatEveryStartNeedsCanNotBeShut) {
  policy::Syscalls rules = syscalls();
  rules.deny = {item("@always")};
  EXPECT_EQ(error_of(rules).code, "needed-syscall-denied");
  EXPECT_EQ(std::size(kOpen) + std::size(kShut) + 1, group_count());
}

TEST(FilterRules, DenyWinsOverAllow) {
  policy::Syscalls rules = syscalls();
  rules.allow = {item("ptrace"), item("@debug")};
  rules.deny = {item("ptrace", 21)};
  EXPECT_EQ(ask(compiled_rules(rules), "ptrace"), kNotify);
  EXPECT_EQ(ask(compiled_rules(rules), "kcmp"), kAllow);
  rules.deny = {};
  rules.rules = {rule("ptrace", 0, RuleOperator::eq, {16}, RuleAction::deny)};
  EXPECT_EQ(ask(compiled_rules(rules), "ptrace", {16}), kNotify);
  EXPECT_EQ(ask(compiled_rules(rules), "ptrace", {0}), kAllow);
}

TEST(FilterRules, DenyingProcessesKeepsThreadsAndExec) {
  policy::Syscalls rules = syscalls();
  rules.deny = {item("@process-spawn", 12)};
  const Filter filter = compiled_rules(rules);
  for (const char* name : {"fork", "vfork"}) {
    if (test::is_here(name)) {
      EXPECT_EQ(ask(filter, name), kNotify);
    }
  }
  EXPECT_EQ(ask(filter, "clone", {SIGCHLD}), kNotify);
  EXPECT_EQ(ask(filter, "clone", {CLONE_VM | CLONE_VFORK | SIGCHLD}), kNotify);
  EXPECT_EQ(ask(filter, "clone", {0x3d0f00}), kAllow);
  EXPECT_EQ(ask(filter, "clone", {0x3d0f00 | CLONE_NEWUSER}), kNotify);
  EXPECT_EQ(ask(filter, "clone3"), quiet_answer(ENOSYS));  // otherwise glibc creates no threads
  EXPECT_EQ(ask(filter, "execve"), kAllow);
  const Refusal refusal = explain(filter, "clone", {SIGCHLD});
  EXPECT_EQ(refusal.what, "clone (a new process)");
  EXPECT_EQ(refusal.rule, "syscalls.deny = [\"@process-spawn\"] (p.toml:12)");
  EXPECT_EQ(refusal.allow_with, "syscalls.deny = { replace = [] }");

  rules.deny = {item("clone")};
  EXPECT_EQ(ask(compiled_rules(rules), "clone", {0x3d0f00}), kNotify);
}

TEST(FilterRules, MinimalMakesThreadsAndAGroupAddsProcesses) {
  policy::Syscalls rules = syscalls(SyscallBase::minimal);
  EXPECT_EQ(ask(compiled_rules(rules), "clone", {0x3d0f00}), kAllow);
  EXPECT_EQ(ask(compiled_rules(rules), "clone", {SIGCHLD}), kNotify);
  EXPECT_EQ(explain(compiled_rules(rules), "clone", {SIGCHLD}).allow_with,
            "syscalls.allow = [\"@process-spawn\"]");
  EXPECT_EQ(ask(compiled_rules(rules), "socket", {1, 1, 0}), kNotify);
  rules.allow = {item("@process-spawn"), item("@network")};
  EXPECT_EQ(ask(compiled_rules(rules), "clone", {SIGCHLD}), kAllow);
  EXPECT_EQ(ask(compiled_rules(rules), "clone", {SIGCHLD | CLONE_NEWNET}), kNotify);
  if (test::is_here("fork")) {
    EXPECT_EQ(ask(compiled_rules(rules), "fork"), kAllow);
  }
  EXPECT_EQ(ask(compiled_rules(rules), "socket", {1, 1, 0}), kAllow);
  EXPECT_EQ(ask(compiled_rules(rules), "socket", {17, 3, 0}), kNotify);
}

// Every operator on a 64-bit argument (mprotect's start), at the edges of each half.
TEST(FilterRules, ComparesAll64Bits) {
  const std::uint64_t values[] = {
      0, 1, 0xffffffff, 0x100000000, 0x1234567890abcdef, ~std::uint64_t{0} - 1};
  for (const std::uint64_t value : values) {
    for (const RuleOperator op : {RuleOperator::eq, RuleOperator::ne, RuleOperator::lt,
                                  RuleOperator::le, RuleOperator::gt, RuleOperator::ge}) {
      policy::Syscalls rules = syscalls();
      rules.rules = {rule("mprotect", 0, op, {value}, RuleAction::deny)};
      const Filter filter = compiled_rules(rules);
      for (const std::uint64_t sample :
           {value, value - 1, value + 1, value ^ (std::uint64_t{1} << 32), value ^ 1,
            std::uint64_t{0}, ~std::uint64_t{0}, value + 0x100000000, value - 0x100000000}) {
        bool denied = false;
        switch (op) {
          case RuleOperator::eq:
            denied = sample == value;
            break;
          case RuleOperator::ne:
            denied = sample != value;
            break;
          case RuleOperator::lt:
            denied = sample < value;
            break;
          case RuleOperator::le:
            denied = sample <= value;
            break;
          case RuleOperator::gt:
            denied = sample > value;
            break;
          default:
            denied = sample >= value;
            break;
        }
        EXPECT_EQ(ask(filter, "mprotect", {sample}), denied ? kNotify : kAllow)
            << value << " " << sample << " " << static_cast<int>(op);
      }
    }
  }
}

TEST(FilterRules, ComparesMasksAndLists) {
  policy::Syscalls rules = syscalls();
  rules.rules = {rule("mprotect", 2, RuleOperator::masked_eq, {6, 6},
                      RuleAction::deny)};  // PROT_WRITE|PROT_EXEC
  Filter filter = compiled_rules(rules);
  EXPECT_EQ(ask(filter, "mprotect", {0, 0, 7}), kNotify);
  EXPECT_EQ(ask(filter, "mprotect", {0, 0, 5}), kAllow);
  rules.rules = {rule("mprotect", 0, RuleOperator::masked_eq,
                      {0xff000000000000ff, 0x0100000000000002}, RuleAction::deny)};
  filter = compiled_rules(rules);
  EXPECT_EQ(ask(filter, "mprotect", {0x01abcdef12345602}), kNotify);
  EXPECT_EQ(ask(filter, "mprotect", {0x02abcdef12345602}), kAllow);
  rules.rules = {rule("kill", 1, RuleOperator::in, {9, 15, 19}, RuleAction::deny)};
  filter = compiled_rules(rules);
  EXPECT_EQ(ask(filter, "kill", {5, 15}), kNotify);
  EXPECT_EQ(ask(filter, "kill", {5, 10}), kAllow);
}

TEST(FilterRules, UpperBitsGetPastNoRule) {
  policy::Syscalls rules = syscalls();
  rules.rules = {rule("kill", 1, RuleOperator::eq, {9}, RuleAction::deny),
                 rule("fchmod", 1, RuleOperator::eq, {0777}, RuleAction::deny),
                 rule("kill", 0, RuleOperator::eq, {~std::uint64_t{0}}, RuleAction::deny)};
  const Filter filter = compiled_rules(rules);
  EXPECT_EQ(ask(filter, "kill", {5, 0xffffffff00000009}), kNotify);
  EXPECT_EQ(ask(filter, "fchmod", {0, 0x107770000 | 0777}), kNotify);  // umode_t is 16 bits
  EXPECT_EQ(ask(filter, "kill", {0xffffffff, 1}), kNotify);            // -1 as int
  EXPECT_EQ(ask(filter, "kill", {~std::uint64_t{0}, 1}), kNotify);
  EXPECT_EQ(ask(filter, "kill", {5, 1}), kAllow);
}

TEST(FilterRules, GrantsOneCallUnderACondition) {
  policy::Syscalls rules = syscalls();
  rules.rules = {rule("ptrace", 0, RuleOperator::eq, {0})};
  const Filter filter = compiled_rules(rules);
  EXPECT_EQ(ask(filter, "ptrace", {0}), kAllow);
  EXPECT_EQ(ask(filter, "ptrace", {1}), kNotify);
  EXPECT_EQ(explain(filter, "ptrace", {1}).rule, "not in syscalls.base = \"default\" (p.toml:3)");
}

TEST(FilterRules, TakeSymbols) {
  policy::Syscalls rules = syscalls();
  rules.rules = {rule("socket", 0, RuleOperator::in, {}, RuleAction::deny)};
  rules.rules[0].value.symbols = {"AF_UNIX", "10"};
  EXPECT_EQ(ask(compiled_rules(rules), "socket", {1, 1, 0}), kNotify);
  EXPECT_EQ(ask(compiled_rules(rules), "socket", {10, 1, 0}), kNotify);
  EXPECT_EQ(ask(compiled_rules(rules), "socket", {2, 1, 0}), kAllow);
  rules.rules[0].value.symbols = {"AF_UNIXX"};
  const Error error = error_of(rules);
  EXPECT_EQ(error.code, "unknown-symbol");
  EXPECT_EQ(error.origin->line, 9);
  EXPECT_EQ(error.hint, "did you mean \"AF_UNIX\"?");
}

TEST(FilterRules, ARuleWithoutConditionSpeaksOfEveryCall) {
  policy::Syscalls rules = syscalls();
  rules.rules = {{{.name = "ptrace", .action = RuleAction::allow}, {}},
                 {{.name = "kill", .action = RuleAction::deny, .reason = "no signals"},
                  {.file = "p.toml", .line = 4}}};
  EXPECT_EQ(ask(compiled_rules(rules), "ptrace", {5}), kAllow);
  EXPECT_EQ(ask(compiled_rules(rules), "kill", {5}), kNotify);
  EXPECT_EQ(explain(compiled_rules(rules), "kill", {5}).rule,
            "syscalls.rule for \"kill\" (p.toml:4): no signals");
}

TEST(FilterRules, RefuseUnknownNamesWithASuggestion) {
  policy::Syscalls rules = syscalls();
  rules.allow = {item("ptrce", 33)};
  Error error = error_of(rules);
  EXPECT_EQ(error.code, "unknown-syscall");
  EXPECT_EQ(error.kind, ErrorKind::policy);
  EXPECT_EQ(error.hint, "did you mean \"ptrace\"?");
  EXPECT_EQ(error.text(), "unknown system call \"ptrce\" (p.toml:33)");
  rules.allow = {};
  rules.deny = {item("@debgu")};
  error = error_of(rules);
  EXPECT_EQ(error.code, "unknown-syscall-group");
  EXPECT_EQ(error.hint, "did you mean \"@debug\"?");
}

/// Denying `name` alone, or with `also`: on architectures that lack it, C libraries make another
/// call.
void expect_no_denial_vanishes(const char* name, const char* successor, const char* also) {
  policy::Syscalls rules = syscalls();
  rules.deny = {item(name, 7)};
  if (test::is_here(name)) {
    EXPECT_EQ(ask(compiled_rules(rules), name), kNotify) << name;
  } else {
    const Error error = error_of(rules);
    EXPECT_EQ(error.code, "absent-syscall") << name;
    EXPECT_EQ(error.origin->line, 7);
    EXPECT_EQ(error.hint, "deny \"" + std::string(successor) + "\" too");
  }
  rules.deny.push_back(item(also));
  EXPECT_TRUE(compile_filter(rules, kPlain)) << name << ", " << also;
}

TEST(FilterRules, NoDenialVanishesWhereACallIsAbsent) {
  expect_no_denial_vanishes("chmod", "fchmodat", "fchmodat");
  expect_no_denial_vanishes("chmod", "fchmodat", "@file-write");
  expect_no_denial_vanishes("open", "openat", "openat");
  expect_no_denial_vanishes("fork", "@process-spawn", "@process-spawn");
  expect_no_denial_vanishes("vfork", "@process-spawn", "clone");
  // A rule restricts the successor too.
  policy::Syscalls rules = syscalls();
  rules.rules = {rule("chmod", 1, RuleOperator::eq, {04755}, RuleAction::deny)};
  EXPECT_EQ(compile_filter(rules, kPlain).has_value(), test::is_here("chmod"));
  rules.rules.push_back(rule("fchmodat", 2, RuleOperator::eq, {04755}, RuleAction::deny));
  EXPECT_EQ(ask(compiled_rules(rules), "fchmodat", {0, 0, 04755}), kNotify);
  // So does a base that does not admit it; and minimal's clone makes threads only.
  rules = syscalls(SyscallBase::none);
  rules.deny = {item("open")};
  EXPECT_TRUE(compile_filter(rules, kPlain));
  rules.allow = {item("openat")};
  EXPECT_EQ(compile_filter(rules, kPlain).has_value(), test::is_here("open"));
  rules = syscalls(SyscallBase::minimal);
  rules.deny = {item("fork")};
  EXPECT_TRUE(compile_filter(rules, kPlain));
  rules.allow = {item("@process-spawn")};
  EXPECT_EQ(compile_filter(rules, kPlain).has_value(), test::is_here("fork"));
}

TEST(FilterRules, AbsentCallsCanBeAllowedAndThoseWithoutSuccessorDenied) {
  policy::Syscalls rules = syscalls();
  rules.allow = {item("open"), item("modify_ldt")};
  rules.deny = {item("iopl"), item("epoll_ctl_old")};
  rules.rules = {rule("mknod", 1, RuleOperator::eq, {010644})};
  EXPECT_EQ(ask(compiled_rules(rules), "read"), kAllow);
  if (test::is_here("modify_ldt")) {
    EXPECT_EQ(ask(compiled_rules(rules), "modify_ldt"), kAllow);
  }
}

TEST(FilterRules, RefuseToDenyWhatSbxNeeds) {
  for (const char* name :
       {"execve", "exit_group", "write", "rt_sigreturn", "restart_syscall", "@always"}) {
    policy::Syscalls rules = syscalls();
    rules.deny = {item(name, 5)};
    EXPECT_EQ(error_of(rules).code, "needed-syscall-denied") << name;
    EXPECT_EQ(error_of(rules).origin->line, 5);
    if (name[0] == '@') continue;
    rules.deny = {};
    rules.rules = {rule(name, 0, RuleOperator::eq, {0}, RuleAction::deny)};
    EXPECT_EQ(error_of(rules).code, "needed-syscall-denied") << name;
  }
  // Whole groups around them may be denied.
  policy::Syscalls rules = syscalls();
  rules.deny = {item("@process"), item("@basic-io"), item("@signal")};
  EXPECT_EQ(ask(compiled_rules(rules), "execve"), kAllow);
  EXPECT_EQ(ask(compiled_rules(rules), "write"), kAllow);
  EXPECT_EQ(ask(compiled_rules(rules), "read"), kNotify);
}

TEST(FilterRules, RefuseArgumentRulesOnHotCalls) {
  for (const char* name : {"read", "openat", "mmap", "futex"}) {
    policy::Syscalls rules = syscalls();
    rules.rules = {rule(name, 0, RuleOperator::eq, {3}, RuleAction::deny)};
    EXPECT_EQ(error_of(rules).code, "rule-on-hot-call") << name;
    rules.rules = {};
    rules.deny = {item(name)};  // the call as a whole may be denied
    EXPECT_EQ(ask(compiled_rules(rules), name), kNotify);
  }
}

TEST(FilterRules, RefuseRulesThatMeanNothing) {
  const std::pair<policy::Sourced<policy::SyscallRule>, const char*> cases[] = {
      {rule("kill", 2, RuleOperator::eq, {3}), "no-such-argument"},
      {rule("kill", 6, RuleOperator::eq, {3}), "no-such-argument"},
      {rule("kill", -1, RuleOperator::eq, {3}), "no-such-argument"},
      {rule("kill", 0, RuleOperator::eq, {}), "wrong-value-count"},
      {rule("kill", 0, RuleOperator::eq, {1, 2}), "wrong-value-count"},
      {rule("kill", 0, RuleOperator::in, {}), "wrong-value-count"},
      {rule("kill", 0, RuleOperator::masked_eq, {1}), "wrong-value-count"},
      {rule("kill", 0, RuleOperator::masked_eq, {1, 2}), "rule-never-matches"},
      {rule("kill", 0, RuleOperator::eq, {0x100000001}), "rule-never-matches"},
      {rule("chmod", 1, RuleOperator::eq, {0x10777}), "rule-never-matches"},
      {rule("klil", 0, RuleOperator::eq, {1}), "unknown-syscall"},
  };
  for (const auto& [bad, code] : cases) {
    policy::Syscalls rules = syscalls();
    rules.rules = {bad};
    EXPECT_EQ(error_of(rules).code, code);
    EXPECT_EQ(error_of(rules).origin->line, 9);
  }
}

TEST(FilterRules, NameTheRuleThatDoesNotFit) {
  policy::Syscalls rules = syscalls();
  for (int i = 0; i < 60; ++i) {
    std::vector<std::uint64_t> values;
    for (std::uint64_t v = 0; v < 100; ++v)
      values.push_back(v * 7 + static_cast<std::uint64_t>(i) * 1000);
    rules.rules.push_back(rule("kill", 0, RuleOperator::in, values, RuleAction::deny, 100 + i));
  }
  const Error error = error_of(rules);
  EXPECT_EQ(error.code, "filter-too-long");
  ASSERT_TRUE(error.origin.has_value());
  const auto fitting = static_cast<std::size_t>(error.origin->line - 100);
  EXPECT_GT(fitting, 10U);
  rules.rules.resize(fitting);  // the rules before the named one fit
  const Filter filter = compiled_rules(rules);
  EXPECT_TRUE(test::is_valid_bpf(filter.program));
  EXPECT_GT(filter.program.size(), 3000U);

  rules.rules = {
      rule("kill", 0, RuleOperator::in, std::vector<std::uint64_t>(100000, 5), RuleAction::deny)};
  EXPECT_EQ(error_of(rules).code, "filter-too-long");
}

TEST(Explain, NamesCallErrnoPlaceCureAndRisk) {
  const Filter filter = compiled_rules(syscalls());
  const Refusal refusal = explain(filter, "ptrace");
  EXPECT_EQ(refusal.what, "ptrace");
  EXPECT_EQ(refusal.errno_value, EPERM);
  EXPECT_EQ(refusal.rule, "not in syscalls.base = \"default\" (p.toml:3)");
  EXPECT_EQ(refusal.allow_with, "syscalls.allow = [\"ptrace\"]");
  EXPECT_EQ(refusal.risk, "the program can read and change the other processes of its sandbox");

  EXPECT_EQ(explain(filter, "mount").allow_with, "");  // the kernel would refuse it anyway
  EXPECT_EQ(explain(filter, "getpid").errno_value, 0);
  EXPECT_EQ(filter.explain(999, {}).what, "system call 999");
  EXPECT_EQ(filter.explain(999, {}).errno_value, ENOSYS);
  EXPECT_EQ(filter.explain(-1, {}).errno_value, ENOSYS);
  EXPECT_EQ(filter.refusal_errno(test::number_of("socket"), {17, 3, 0}), EAFNOSUPPORT);
}

TEST(Explain, SaysWhichDenyEntryToDrop) {
  policy::Syscalls rules = syscalls();
  rules.deny = {item("@ipc", 5), item("kill", 6), item("@process-spawn", 7)};
  const Refusal refusal = explain(compiled_rules(rules), "kill");
  EXPECT_EQ(refusal.rule, "syscalls.deny = [\"kill\"] (p.toml:6)");
  EXPECT_EQ(refusal.allow_with, "syscalls.deny = { replace = [\"@ipc\", \"@process-spawn\"] }");
}

}  // namespace
}  // namespace sbx::plan
