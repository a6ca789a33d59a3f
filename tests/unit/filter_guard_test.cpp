#include <asm/ioctls.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <csignal>

#include "filter_support.hpp"

namespace sbx::plan {
namespace {

using test::ask;
using test::explain;
using test::item;
using test::kAllow;
using test::kNotify;
using test::kPlain;
using test::quiet_answer;
using test::syscalls;
using test::Words;

constexpr std::uint64_t kUpper = 0xabcdef0100000000;  // not read by the kernel

class Guards : public testing::Test {
 protected:
  const Filter filter_ = compile_filter(syscalls(), kPlain).value();
};

TEST_F(Guards, AdmitSocketsOfTheUsualFamiliesAndProtocols) {
  for (const std::uint64_t flags : Words{0, 02000000, 02004000}) {
    EXPECT_EQ(ask(filter_, "socket", {AF_UNIX, SOCK_SEQPACKET | flags, 0}), kAllow);
    EXPECT_EQ(ask(filter_, "socket", {AF_INET, SOCK_STREAM | flags, 0}), kAllow);
    EXPECT_EQ(ask(filter_, "socket", {AF_INET6, SOCK_STREAM | flags, IPPROTO_TCP}), kAllow);
    EXPECT_EQ(ask(filter_, "socket", {AF_INET, SOCK_DGRAM | flags, IPPROTO_UDP}), kAllow);
    EXPECT_EQ(ask(filter_, "socket", {AF_NETLINK, SOCK_RAW | flags, 0}), kAllow);
  }
}

TEST_F(Guards, RefuseOtherSocketFamiliesByName) {
  for (const std::uint64_t family : Words{AF_PACKET, AF_ALG, AF_VSOCK, AF_BLUETOOTH, AF_TIPC,
                                          AF_KEY, AF_CAN, AF_XDP, AF_UNSPEC, 4711}) {
    EXPECT_EQ(ask(filter_, "socket", {family, SOCK_DGRAM, 0}), kNotify) << family;
    EXPECT_EQ(explain(filter_, "socket", {family, SOCK_DGRAM, 0}).errno_value, EAFNOSUPPORT);
  }
  EXPECT_EQ(explain(filter_, "socket", {AF_PACKET, SOCK_RAW, 0}).what, "socket(AF_PACKET)");
  EXPECT_EQ(explain(filter_, "socket", {AF_PACKET, SOCK_RAW, 0}).allow_with, "");
  EXPECT_EQ(explain(filter_, "socket", {AF_ALG, SOCK_SEQPACKET, 0}).allow_with,
            "syscalls.rule = [{ name = \"socket\", when = { arg = 0, op = \"eq\", value = "
            "\"AF_ALG\" }, action = \"allow\" }]");
  EXPECT_EQ(explain(filter_, "socket", {4711, 1, 0}).what, "socket(4711)");
}

TEST_F(Guards, RefuseRawSocketsAndOtherProtocols) {
  EXPECT_EQ(ask(filter_, "socket", {AF_INET, SOCK_RAW, IPPROTO_TCP}), kNotify);
  EXPECT_EQ(ask(filter_, "socket", {AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW}), kNotify);
  EXPECT_EQ(ask(filter_, "socket", {AF_INET, SOCK_PACKET, 3}), kNotify);
  EXPECT_EQ(ask(filter_, "socket", {AF_INET, SOCK_DGRAM, IPPROTO_ICMP}), kNotify);
  EXPECT_EQ(ask(filter_, "socket", {AF_INET, SOCK_STREAM, IPPROTO_SCTP}), kNotify);
  EXPECT_EQ(ask(filter_, "socket", {AF_NETLINK, SOCK_RAW, 9}), kNotify);
  EXPECT_EQ(explain(filter_, "socket", {AF_INET, SOCK_RAW, 1}).what, "socket(AF_INET, SOCK_RAW)");
  EXPECT_EQ(explain(filter_, "socket", {AF_INET, SOCK_RAW, 1}).errno_value, EPERM);
  EXPECT_EQ(explain(filter_, "socket", {AF_INET, SOCK_DGRAM, 1}).what,
            "socket(AF_INET, IPPROTO_ICMP)");
  EXPECT_EQ(explain(filter_, "socket", {AF_INET, SOCK_DGRAM, 1}).errno_value, EPROTONOSUPPORT);
  EXPECT_EQ(explain(filter_, "socket", {AF_NETLINK, SOCK_RAW, 9}).what,
            "socket(AF_NETLINK, NETLINK_AUDIT)");
  // Go probes for MPTCP on every machine: no denial.
  EXPECT_EQ(ask(filter_, "socket", {AF_INET, SOCK_STREAM, IPPROTO_MPTCP}),
            quiet_answer(EPROTONOSUPPORT));
}

TEST_F(Guards, CompareOnlyWhatTheKernelReads) {
  EXPECT_EQ(ask(filter_, "socket", {kUpper | AF_INET, kUpper | SOCK_STREAM, kUpper | IPPROTO_TCP}),
            kAllow);
  EXPECT_EQ(ask(filter_, "socket", {kUpper | AF_PACKET, SOCK_DGRAM, 0}), kNotify);
  EXPECT_EQ(ask(filter_, "ioctl", {0, kUpper | TIOCSTI, 0}), kNotify);
  EXPECT_EQ(ask(filter_, "clone", {kUpper | CLONE_NEWUSER | SIGCHLD}), kNotify);
  EXPECT_EQ(ask(filter_, "clone", {kUpper | SIGCHLD}), kAllow);
  EXPECT_EQ(ask(filter_, "prlimit64", {kUpper | 1, 0, 4096}), kNotify);
  EXPECT_EQ(ask(filter_, "prlimit64", {kUpper, 0, 4096}), kAllow);
}

TEST_F(Guards, RefuseEveryNamespaceFlagOfClone) {
  EXPECT_EQ(ask(filter_, "clone", {SIGCHLD}), kAllow);
  EXPECT_EQ(ask(filter_, "clone", {CLONE_VM | CLONE_VFORK | SIGCHLD}), kAllow);
  EXPECT_EQ(ask(filter_, "clone", {0x3d0f00}), kAllow);  // glibc's threads
  for (const std::uint64_t flag : Words{CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                        CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET}) {
    EXPECT_EQ(ask(filter_, "clone", {flag | SIGCHLD}), kNotify) << flag;
  }
  const Refusal refusal = explain(filter_, "clone", {CLONE_NEWUSER | CLONE_NEWNS | SIGCHLD});
  EXPECT_EQ(refusal.what, "clone(CLONE_NEWNS|CLONE_NEWUSER)");
  EXPECT_EQ(refusal.errno_value, EPERM);
  EXPECT_EQ(refusal.allow_with, "");
}

TEST_F(Guards, RefuseTypingIntoTerminals) {
  EXPECT_EQ(ask(filter_, "ioctl", {0, TIOCSTI, 0}), kNotify);
  EXPECT_EQ(ask(filter_, "ioctl", {0, TIOCLINUX, 0}), kNotify);
  EXPECT_EQ(ask(filter_, "ioctl", {0, TIOCSETD, 0}), kNotify);
  EXPECT_EQ(ask(filter_, "ioctl", {0, TCGETS, 0}), kAllow);
  EXPECT_EQ(ask(filter_, "ioctl", {0, FIONREAD, 0}), kAllow);
  EXPECT_EQ(explain(filter_, "ioctl", {0, TIOCSTI, 0}).what, "ioctl(TIOCSTI)");
}

TEST_F(Guards, RefuseNewLimitsForOtherProcesses) {
  EXPECT_EQ(ask(filter_, "prlimit64", {0, 0, 4096, 0}), kAllow);
  EXPECT_EQ(ask(filter_, "prlimit64", {1, 0, 0, 4096}), kAllow);
  EXPECT_EQ(ask(filter_, "prlimit64", {1, 0, 4096, 0}), kNotify);
  EXPECT_EQ(ask(filter_, "prlimit64", {1, 0, 0x100000000, 0}),
            kNotify);  // a pointer whose low half is zero
  EXPECT_EQ(explain(filter_, "prlimit64", {1, 0, 4096, 0}).what, "prlimit64(pid 1)");
}

TEST_F(Guards, RefuseOtherPersonalities) {
  EXPECT_EQ(ask(filter_, "personality", {0}), kAllow);
  EXPECT_EQ(ask(filter_, "personality", {0xffffffff}), kAllow);
  EXPECT_EQ(ask(filter_, "personality", {~std::uint64_t{0}}), kAllow);
  EXPECT_EQ(ask(filter_, "personality", {0x0040000}), kNotify);
  EXPECT_EQ(explain(filter_, "personality", {0x0040000}).what, "personality(0x40000)");
  EXPECT_EQ(explain(filter_, "personality", {0x0040000}).allow_with,
            "syscalls.allow = [\"personality\"]");
}

TEST_F(Guards, RefuseASecondListener) {
  EXPECT_EQ(ask(filter_, "seccomp", {SECCOMP_SET_MODE_FILTER, 0, 4096}), kAllow);
  EXPECT_EQ(ask(filter_, "seccomp", {SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, 4096}),
            kAllow);
  EXPECT_EQ(ask(filter_, "seccomp", {SECCOMP_GET_ACTION_AVAIL, 0, 4096}), kAllow);
  EXPECT_EQ(ask(filter_, "seccomp",
                {SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | 1, 4096}),
            kNotify);
  EXPECT_EQ(ask(filter_, "prctl", {PR_SET_SECCOMP, 2, 4096}), kAllow);
}

TEST_F(Guards, LeaveHonestPrctlOptionsAlone) {
  for (const std::uint64_t option :
       Words{PR_SET_NAME, PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS,
             PR_SET_CHILD_SUBREAPER, PR_SET_THP_DISABLE, PR_SET_PTRACER, PR_SET_VMA,
             PR_CAPBSET_READ, PR_CAP_AMBIENT, PR_SET_TIMERSLACK}) {
    EXPECT_EQ(ask(filter_, "prctl", {option}), kAllow) << option;
  }
  for (const std::uint64_t option : Words{PR_SET_MM, PR_SCHED_CORE, PR_MCE_KILL}) {
    EXPECT_EQ(ask(filter_, "prctl", {option}), kNotify) << option;
  }
  EXPECT_EQ(ask(filter_, "prctl", {500}), quiet_answer(EINVAL));
  EXPECT_EQ(explain(filter_, "prctl", {PR_SET_MM}).what, "prctl(PR_SET_MM)");
}

TEST_F(Guards, AnswerProbesOfRunTimesQuietly) {
  for (const char* name : {"clone3", "io_uring_setup", "get_mempolicy", "mbind", "move_pages",
                           "memfd_secret", "io_setup"}) {
    EXPECT_EQ(ask(filter_, name), quiet_answer(ENOSYS)) << name;
  }
}

TEST(GuardsWithRules, ANameLiftsItsGuardAndAGroupDoesNot) {
  policy::Syscalls rules = syscalls();
  rules.allow = {item("personality"), item("socket"), item("clone"), item("ioctl"),
                 item("prlimit64")};
  const Filter named = compile_filter(rules, kPlain).value();
  EXPECT_EQ(ask(named, "personality", {0x0040000}), kAllow);
  EXPECT_EQ(ask(named, "socket", {AF_PACKET, SOCK_RAW, 0}), kAllow);
  // Guards that an allow by name doesn't lift.
  EXPECT_EQ(ask(named, "clone", {CLONE_NEWUSER | SIGCHLD}), kNotify);
  EXPECT_EQ(ask(named, "ioctl", {0, TIOCSTI}), kNotify);
  EXPECT_EQ(ask(named, "prlimit64", {1, 0, 4096}), kNotify);

  rules.allow = {item("@network"), item("@process"), item("@process-spawn")};
  const Filter grouped = compile_filter(rules, kPlain).value();
  EXPECT_EQ(ask(grouped, "personality", {0x0040000}), kNotify);
  EXPECT_EQ(ask(grouped, "socket", {AF_PACKET, SOCK_RAW, 0}), kNotify);
  EXPECT_EQ(ask(grouped, "clone3"), quiet_answer(ENOSYS));
}

TEST(GuardsWithRules, AValueLiftsOnlyTheCheckOfItsArgument) {
  policy::Syscalls rules = syscalls();
  rules.rules = {test::rule("socket", 0, policy::RuleOperator::in, {AF_UNIX, AF_INET, AF_ALG})};
  Filter filter = compile_filter(rules, kPlain).value();
  EXPECT_EQ(ask(filter, "socket", {AF_ALG, SOCK_SEQPACKET, 0}), kAllow);
  EXPECT_EQ(ask(filter, "socket", {AF_PACKET, SOCK_RAW, 0}), kNotify);
  EXPECT_EQ(ask(filter, "socket", {AF_INET, SOCK_RAW, 0}), kNotify);
  EXPECT_EQ(ask(filter, "socket", {AF_INET6, SOCK_STREAM, 0}), kAllow);

  rules.rules = {test::rule("socket", 2, policy::RuleOperator::eq, {IPPROTO_ICMP})};
  filter = compile_filter(rules, kPlain).value();
  EXPECT_EQ(ask(filter, "socket", {AF_INET, SOCK_DGRAM, IPPROTO_ICMP}), kAllow);
  EXPECT_EQ(ask(filter, "socket", {AF_INET, SOCK_DGRAM, IPPROTO_SCTP}), kNotify);
  EXPECT_EQ(ask(filter, "socket", {AF_INET, SOCK_RAW, IPPROTO_ICMP}), kNotify);

  rules.rules.push_back(test::rule("socket", 1, policy::RuleOperator::eq, {SOCK_RAW}));
  filter = compile_filter(rules, kPlain).value();
  EXPECT_EQ(ask(filter, "socket", {AF_INET, SOCK_RAW, IPPROTO_ICMP}), kAllow);  // the rules add up
}

TEST(GuardsWithRules, ARangeOfValuesLiftsNoGuard) {
  policy::Syscalls rules = syscalls(policy::SyscallBase::none);
  rules.rules = {test::rule("ioctl", 1, policy::RuleOperator::ne, {0})};
  const Filter filter = compile_filter(rules, kPlain).value();
  EXPECT_EQ(ask(filter, "ioctl", {0, TCGETS}), kAllow);
  EXPECT_EQ(ask(filter, "ioctl", {0, TIOCSTI}), kNotify);
  EXPECT_EQ(ask(filter, "ioctl", {0, 0}), kNotify);
}

class FileGuards : public testing::Test {
 protected:
  static Filter compiled(bool special, const policy::Syscalls& rules = syscalls()) {
    FilterContext context = kPlain;
    context.files_reach_host = true;
    context.special_files_reach_host = special;
    return compile_filter(rules, context).value();
  }
  const Filter filter_ = compiled(false);
  const Filter copy_ = compile_filter(syscalls(), kPlain).value();
};

TEST_F(FileGuards, RefuseSetIdModesWhereFilesReachTheHost) {
  const struct {
    const char* call;
    test::Arguments arguments;
    unsigned mode;
  } makers[] = {{"chmod", {0x1000}, 1},
                {"fchmod", {3}, 1},
                {"fchmodat", {3, 0x1000}, 2},
                {"fchmodat2", {3, 0x1000, 0, 0x100}, 2},
                {"open", {0x1000, O_CREAT | O_RDWR}, 2},
                {"openat", {3, 0x1000, O_CREAT | O_RDWR}, 3},
                {"open", {0x1000, O_TMPFILE | O_RDWR}, 2},
                {"openat", {3, 0x1000, O_TMPFILE | O_RDWR}, 3},
                {"creat", {0x1000}, 1},
                {"mknod", {0x1000, 0, 0}, 1},
                {"mknodat", {3, 0x1000, 0, 0}, 2},
                {"mkdir", {0x1000}, 1},
                {"mkdirat", {3, 0x1000}, 2}};
  for (const auto& maker : makers) {
    if (!test::is_here(maker.call)) continue;
    for (const std::uint64_t mode : Words{04755, 02755, 06000, 0104755}) {
      test::Arguments arguments = maker.arguments;
      arguments[maker.mode] = kUpper | mode;
      EXPECT_EQ(ask(filter_, maker.call, arguments), kNotify) << maker.call << mode;
      EXPECT_EQ(ask(copy_, maker.call, arguments), kAllow) << maker.call << mode;
    }
    for (const std::uint64_t mode : Words{0755, 01777, 0}) {
      test::Arguments arguments = maker.arguments;
      arguments[maker.mode] = kUpper | mode;
      EXPECT_EQ(ask(filter_, maker.call, arguments), kAllow) << maker.call << mode;
    }
  }
}

TEST_F(FileGuards, LeaveTheModeOfAFileThatIsNotMadeAlone) {
  EXPECT_EQ(ask(filter_, "openat", {3, 0x1000, 0, 06755}), kAllow);
  EXPECT_EQ(ask(filter_, "openat", {3, 0x1000, O_RDWR, 06755}), kAllow);
  EXPECT_EQ(ask(filter_, "openat", {3, 0x1000, O_DIRECTORY, 06755}), kAllow);
}

TEST_F(FileGuards, RefuseAModeThatLiesInMemoryQuietly) {
  EXPECT_EQ(ask(filter_, "openat2", {3, 0x1000, 0x1000, 24}), quiet_answer(ENOSYS));
  EXPECT_EQ(ask(copy_, "openat2", {3, 0x1000, 0x1000, 24}), kAllow);
}

TEST_F(FileGuards, RefuseDevicesAndWhiteouts) {
  for (const std::uint64_t type : Words{S_IFCHR, S_IFBLK}) {
    EXPECT_EQ(ask(filter_, "mknodat", {3, 0x1000, type | 0644, 0}), kNotify);
    EXPECT_EQ(ask(copy_, "mknodat", {3, 0x1000, type | 0644, 0}), kAllow);
  }
  EXPECT_EQ(ask(filter_, "renameat2", {3, 0x1000, 3, 0x1000, 4}), kNotify);
  EXPECT_EQ(ask(filter_, "renameat2", {3, 0x1000, 3, 0x1000, 2}), kAllow);
  EXPECT_EQ(ask(copy_, "renameat2", {3, 0x1000, 3, 0x1000, 4}), kAllow);
}

TEST_F(FileGuards, RefuseFifosAndSocketsWhereNothingElseDoes) {
  const Filter special = compiled(true);
  for (const std::uint64_t type : Words{S_IFIFO, S_IFSOCK}) {
    EXPECT_EQ(ask(special, "mknodat", {3, 0x1000, type | 0644, 0}), kNotify);
    EXPECT_EQ(ask(filter_, "mknodat", {3, 0x1000, type | 0644, 0}), kAllow);
  }
  EXPECT_EQ(ask(special, "mknodat", {3, 0x1000, S_IFREG | 0644, 0}), kAllow);
}

TEST_F(FileGuards, NameTheModeAndTheCure) {
  const Refusal refusal = explain(filter_, "fchmodat", {3, 0x1000, 04755});
  EXPECT_EQ(refusal.what, "fchmodat(04755)");
  EXPECT_EQ(refusal.errno_value, EPERM);
  EXPECT_EQ(refusal.allow_with, "syscalls.allow = [\"fchmodat\"]");
  EXPECT_EQ(explain(filter_, "mknodat", {3, 0x1000, S_IFCHR | 0644}).what, "mknodat(S_IFCHR)");
  EXPECT_EQ(explain(filter_, "renameat2", {3, 0, 3, 0, 4}).what, "renameat2(RENAME_WHITEOUT)");
  policy::Syscalls named = syscalls();
  named.allow = {item("fchmodat"), item("openat"), item("openat2"), item("mknodat")};
  const Filter lifted = compiled(true, named);
  EXPECT_EQ(ask(lifted, "fchmodat", {3, 0x1000, 04755}), kAllow);
  EXPECT_EQ(ask(lifted, "openat", {3, 0x1000, O_CREAT | O_RDWR, 04755}), kAllow);
  EXPECT_EQ(ask(lifted, "openat2", {3, 0x1000, 0x1000, 24}), kAllow);
  EXPECT_EQ(ask(lifted, "mknodat", {3, 0x1000, S_IFIFO | 0644}), kAllow);
  EXPECT_EQ(ask(lifted, "fchmod", {3, 04755}), kNotify);
}

}  // namespace
}  // namespace sbx::plan
