#include <gtest/gtest.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <random>

#include "filter_support.hpp"

// Two independent oracles for the compiled program: libseccomp's compiler, and the decision tree
// walked in C++.
namespace sbx::plan {
namespace {

using policy::RuleAction;
using policy::RuleOperator;
using test::kPlain;
using test::Words;

struct SeccompDeleter {
  void operator()(void* context) const { seccomp_release(context); }
};

class Oracle {
 public:
  Oracle() : context_(seccomp_init(SCMP_ACT_ERRNO(EPERM))) {
    // Without this libseccomp refuses numbers that it doesn't know yet.
    (void)seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
    (void)seccomp_attr_set(context_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  }
  void add(std::uint32_t action, int number, const std::vector<scmp_arg_cmp>& comparisons = {}) {
    const int answer =
        seccomp_rule_add_array(context_.get(), action, number,
                               static_cast<unsigned>(comparisons.size()), comparisons.data());
    EXPECT_EQ(answer, 0) << number;
  }
  std::vector<sock_filter> program() const {
    const int fd = memfd_create("bpf", MFD_CLOEXEC);
    EXPECT_EQ(seccomp_export_bpf(context_.get(), fd), 0);
    const off_t size = lseek(fd, 0, SEEK_END);
    std::vector<sock_filter> program(static_cast<std::size_t>(size) / sizeof(sock_filter));
    EXPECT_EQ(pread(fd, program.data(), static_cast<std::size_t>(size), 0), size);
    close(fd);
    return program;
  }

 private:
  std::unique_ptr<void, SeccompDeleter> context_;
};

scmp_arg_cmp word_is(unsigned argument, std::uint64_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, 0xffffffff, value};
}
scmp_arg_cmp masked(unsigned argument, std::uint64_t mask, std::uint64_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, mask, value};
}

FilterContext in_kernel() {
  FilterContext context = kPlain;
  context.listener = false;
  return context;
}

void add_unguarded(Oracle& oracle, const Call& call) {
  switch (call.decision.standing) {
    case Standing::quiet:
    case Standing::absent:
      oracle.add(SCMP_ACT_ERRNO(call.decision.quiet_errno), call.number);
      break;
    case Standing::denied:
      break;  // libseccomp refuses rules equal to its default action
    default:
      oracle.add(SCMP_ACT_ALLOW, call.number);
  }
}

/// The guards of calls that create files, if files reach the host.
void add_file_guard(Oracle& oracle, const Call& call) {
  const int n = call.number;
  const auto mode = static_cast<unsigned>(std::string_view(call.arguments).find('h'));
  switch (call.decision.guard) {
    case ArgumentGuard::new_mode:
      oracle.add(SCMP_ACT_ALLOW, n, {masked(mode - 1, 020000100, 0)});
      [[fallthrough]];
    case ArgumentGuard::mode:
      oracle.add(SCMP_ACT_ALLOW, n, {masked(mode, 06000, 0)});
      break;
    case ArgumentGuard::node:
      for (std::uint64_t type = 0; type < 16; ++type) {
        if (type != 2 && type != 6)  // devices
          oracle.add(SCMP_ACT_ALLOW, n, {masked(mode, 0176000, type << 12)});
      }
      break;
    case ArgumentGuard::whiteout:
      oracle.add(SCMP_ACT_ALLOW, n, {masked(4, 4, 0)});
      break;
    default:
      break;  // openat2: never
  }
}

bool makes_files(const Call& call) {
  return call.decision.guard == ArgumentGuard::mode ||
         call.decision.guard == ArgumentGuard::new_mode ||
         call.decision.guard == ArgumentGuard::unseen_mode ||
         call.decision.guard == ArgumentGuard::node ||
         call.decision.guard == ArgumentGuard::whiteout;
}

void add_guarded(Oracle& oracle, const Call& call) {
  const int n = call.number;
  switch (call.decision.guard) {
    case ArgumentGuard::socket:
      oracle.add(SCMP_ACT_ALLOW, n, {word_is(0, AF_UNIX)});
      oracle.add(SCMP_ACT_ALLOW, n, {word_is(0, AF_NETLINK), word_is(2, 0)});
      for (const std::uint64_t family : Words{AF_INET, AF_INET6}) {
        for (const std::uint64_t type : Words{SOCK_STREAM, SOCK_DGRAM}) {
          for (const std::uint64_t protocol : Words{0, 6, 17}) {
            oracle.add(SCMP_ACT_ALLOW, n,
                       {word_is(0, family), masked(1, 0xf, type), word_is(2, protocol)});
          }
        }
      }
      break;
    case ArgumentGuard::socketpair:
      oracle.add(SCMP_ACT_ALLOW, n, {word_is(0, AF_UNIX)});
      break;
    case ArgumentGuard::clone:
      oracle.add(SCMP_ACT_ALLOW, n, {masked(0, 0x7e020000, 0)});
      break;
    case ArgumentGuard::prlimit:
      oracle.add(SCMP_ACT_ALLOW, n, {word_is(0, 0)});
      oracle.add(SCMP_ACT_ALLOW, n, {{2, SCMP_CMP_EQ, 0, 0}});
      break;
    case ArgumentGuard::personality:
      oracle.add(SCMP_ACT_ALLOW, n, {word_is(0, 0)});
      oracle.add(SCMP_ACT_ALLOW, n, {word_is(0, 0xffffffff)});
      break;
    case ArgumentGuard::affinity:
    case ArgumentGuard::unseen_memory:
    case ArgumentGuard::unseen_writes:
      oracle.add(SCMP_ACT_ALLOW, n);
      break;
    default:
      break;  // ioctl, prctl, seccomp: masks can't express "all but"; filter_guard_test covers them
  }
}

bool oracle_knows(const Call& call) {
  return call.decision.guard != ArgumentGuard::ioctl &&
         call.decision.guard != ArgumentGuard::prctl &&
         call.decision.guard != ArgumentGuard::seccomp;
}

const std::uint64_t kSamples[] = {0, 1, 2, 3, 6, 9, 10, 16, 17, 262, 0x10000, 0x3d0f00, 0x10000000,
                                  0x40000000, 0xffffffff, 0x100000000, 0x100000001, 0x200000002,
                                  0x80000, 0x80801, 0x80003, ~std::uint64_t{0},
                                  // modes and flags of new files
                                  04755, 02000, 0100644, 0104755, 010644, 020000, 0140000, 0102,
                                  020200002, 4, 0x100000ed, 0xfff0000000000fed};

bool allows(const std::vector<sock_filter>& program, int number, const test::Arguments& arguments) {
  return test::ask(program, static_cast<std::uint32_t>(number), arguments).action == test::kAllow;
}

void compare_default_base(bool files_reach_host) {
  Oracle oracle;
  for (const Call& call : calls()) {
    if (makes_files(call) && files_reach_host)
      add_file_guard(oracle, call);
    else if (call.decision.guard == ArgumentGuard::none ||
             call.decision.guard == ArgumentGuard::watch ||
             call.decision.guard == ArgumentGuard::socket_option || makes_files(call))
      add_unguarded(oracle, call);
    else
      add_guarded(oracle, call);
  }
  const std::vector<sock_filter> theirs = oracle.program();
  FilterContext context = in_kernel();
  context.files_reach_host = files_reach_host;
  const Filter ours = compile_filter(test::syscalls(), context).value();
  std::mt19937_64 random(20261121);
  const auto sample = [&] { return kSamples[random() % std::size(kSamples)]; };
  for (const Call& call : calls()) {
    if (!oracle_knows(call)) continue;
    for (int i = 0; i < (call.decision.guard == ArgumentGuard::none ? 3 : 3000); ++i) {
      const test::Arguments arguments{sample(), sample(), sample(), sample(), sample(), sample()};
      if (call.decision.guard == ArgumentGuard::none) {
        ASSERT_EQ(test::ask(ours.program, call.number, arguments).action,
                  test::ask(theirs, call.number, arguments).action)
            << call.name;
      } else {
        ASSERT_EQ(allows(ours.program, call.number, arguments),
                  allows(theirs, call.number, arguments))
            << call.name << " " << arguments[0] << " " << arguments[1] << " " << arguments[2];
      }
    }
  }
}

TEST(FilterOracle, AgreesWithLibseccompOnTheDefaultBase) {
  compare_default_base(false);
}

TEST(FilterOracle, AgreesWithLibseccompWhereFilesReachTheHost) {
  compare_default_base(true);
}

TEST(FilterOracle, AgreesWithLibseccompOnRandomPolicies) {
  const RuleOperator operators[] = {RuleOperator::eq,       RuleOperator::ne, RuleOperator::lt,
                                    RuleOperator::le,       RuleOperator::gt, RuleOperator::ge,
                                    RuleOperator::masked_eq};
  const scmp_compare theirs_of[] = {SCMP_CMP_EQ, SCMP_CMP_NE, SCMP_CMP_LT,       SCMP_CMP_LE,
                                    SCMP_CMP_GT, SCMP_CMP_GE, SCMP_CMP_MASKED_EQ};
  std::mt19937_64 random(7);
  for (int round = 0; round < 30; ++round) {
    policy::Syscalls rules = test::syscalls(policy::SyscallBase::none);
    Oracle oracle;
    std::vector<std::uint64_t> interesting(std::begin(kSamples), std::end(kSamples));
    for (const Call& call : calls()) {
      if (call.decision.guard != ArgumentGuard::none) continue;
      const bool quiet =
          call.decision.standing == Standing::quiet || call.decision.standing == Standing::absent;
      if (quiet || call.decision.standing == Standing::own) {
        add_unguarded(oracle, call);
        continue;
      }
      const std::string_view widths(call.arguments);
      const std::size_t wide = widths.find('w');
      if (random() % 3 == 0) {
        rules.allow.push_back(test::item(call.name));
        oracle.add(SCMP_ACT_ALLOW, call.number);
      } else if (random() % 3 == 0 && wide != std::string_view::npos && !is_hot(call)) {
        const std::size_t pick = random() % std::size(operators);
        std::uint64_t value =
            random() % 2 == 0 ? kSamples[random() % std::size(kSamples)] : random();
        const std::uint64_t mask = random() | 1;
        if (operators[pick] == RuleOperator::masked_eq) value &= mask;
        const auto values = operators[pick] == RuleOperator::masked_eq ? std::vector{mask, value}
                                                                       : std::vector{value};
        rules.rules.push_back(
            test::rule(call.name, static_cast<int>(wide), operators[pick], values));
        const scmp_arg_cmp comparison =
            operators[pick] == RuleOperator::masked_eq
                ? scmp_arg_cmp{static_cast<unsigned>(wide), theirs_of[pick], mask, value}
                : scmp_arg_cmp{static_cast<unsigned>(wide), theirs_of[pick], value, 0};
        oracle.add(SCMP_ACT_ALLOW, call.number, {comparison});
        interesting.insert(interesting.end(), {value, value + 1, value - 1, value ^ 0x100000000});
      }
    }
    const Filter ours = compile_filter(rules, in_kernel()).value();
    ASSERT_TRUE(test::is_valid_bpf(ours.program));
    const std::vector<sock_filter> theirs = oracle.program();
    for (const Call& call : calls()) {
      if (call.decision.guard != ArgumentGuard::none) continue;
      for (const std::uint64_t value : interesting) {
        const test::Arguments arguments{value, value, value, value, value, value};
        ASSERT_EQ(test::ask(ours.program, call.number, arguments).action,
                  test::ask(theirs, call.number, arguments).action)
            << call.name << " " << value << " in round " << round;
      }
    }
  }
}

// explain() and the program in the kernel never disagree, long jumps included.
TEST(FilterOracle, TheProgramAndExplainAgree) {
  std::mt19937_64 random(99);
  std::size_t longest = 0;
  for (int round = 0; round < 12; ++round) {
    policy::Syscalls rules = test::syscalls(static_cast<policy::SyscallBase>(round % 3));
    std::vector<std::uint64_t> interesting(std::begin(kSamples), std::end(kSamples));
    for (const Call& call : calls()) {
      const bool own = call.decision.standing == Standing::own;
      if (random() % 12 == 0) rules.allow.push_back(test::item(call.name));
      if (random() % 12 == 0 && !own) rules.deny.push_back(test::item(call.name));
      if (is_hot(call) || own || call.arguments[0] == '\0' || random() % 4 != 0) continue;
      const int argument = static_cast<int>(random() % std::string_view(call.arguments).size());
      std::vector<std::uint64_t> values;
      for (int i = 0; i < 6; ++i) values.push_back(random() % 0x8000);
      interesting.push_back(values[3]);
      rules.rules.push_back(test::rule(call.name, argument, RuleOperator::in, values,
                                       random() % 2 == 0 ? RuleAction::allow : RuleAction::deny));
    }
    for (const char* group : {"@process-spawn", "@network", "@ipc"}) {
      if (random() % 2 == 0)
        (random() % 2 == 0 ? rules.allow : rules.deny).push_back(test::item(group));
    }
    FilterContext context = in_kernel();
    context.files_reach_host = round % 2 == 0;
    context.special_files_reach_host = round % 4 == 0;
    const Filter filter = compile_filter(rules, context).value();
    ASSERT_TRUE(test::is_valid_bpf(filter.program));
    longest = std::max(longest, filter.program.size());
    for (const Call& call : calls()) {
      for (int i = 0; i < 60; ++i) {
        std::uint64_t arguments[6];
        for (std::uint64_t& argument : arguments)
          argument = interesting[random() % interesting.size()];
        const int error = filter.refusal_errno(call.number, arguments);
        const std::uint32_t expected = error == 0 ? test::kAllow : test::quiet_answer(error);
        ASSERT_EQ(test::ask(filter.program, call.number, std::to_array(arguments)).action, expected)
            << call.name << " in round " << round;
      }
    }
  }
  EXPECT_GT(longest, 1000U);  // long jumps were necessary
}

}  // namespace
}  // namespace sbx::plan
