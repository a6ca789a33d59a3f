#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/event_loop.hpp"
#include "fake_sandbox.hpp"
#include "supervise/notifier.hpp"

namespace sbx::test {
namespace {

using namespace std::chrono_literals;

Denial explain(int number, const std::uint64_t (&arguments)[6], int& errno_value) {
  errno_value = arguments[0] == 7 ? ENOSYS : EACCES;
  return {.kind = DenialKind::syscall,
          .what = "call" + std::to_string(number) + "(" + std::to_string(arguments[0]) + ")"};
}

/// Makes the denied call (swapon; any would do) that often; returns the number of correct answers.
int count_answers(std::uint64_t argument, int times, int wanted) {
  int right = 0;
  for (int i = 0; i < times; ++i)
    right += ::syscall(SYS_swapon, argument, 0) == -1 && errno == wanted ? 1 : 0;
  return right;
}

FakeRun denying(std::function<int()> main) {
  FakeRun run;
  run.listener = true;
  run.settings.explain = explain;
  run.settings.budgets.wall_time = 60s;
  run.main = [main = std::move(main)] { return send_listener(SYS_swapon) ? main() : kNoSeccomp; };
  return run;
}

#define SKIP_WITHOUT_SECCOMP(seen)                               \
  if ((seen).verdict == "exited 77" || (seen).verdict == "lost") \
  GTEST_SKIP() << "no seccomp listener here"

TEST(Notifier, AnswersWithThePolicysErrnoAndCountsByName) {
  const Seen seen = run_to_end(denying(
      [] { return count_answers(1, 3, EACCES) == 3 && count_answers(7, 2, ENOSYS) == 2 ? 0 : 1; }));
  SKIP_WITHOUT_SECCOMP(seen);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_EQ(seen.denials.find("call" + std::to_string(SYS_swapon) + "(1)*3@"), 0U) << seen.denials;
  EXPECT_NE(seen.denials.find("(7)*2@"), std::string::npos) << seen.denials;
}

TEST(Notifier, KeepsTheNameOfTheProcessThatTriedFirst) {
  const Seen seen = run_to_end(denying([] {
    ::prctl(PR_SET_NAME, "tried-it");
    return count_answers(1, 1, EACCES) == 1 ? 0 : 1;
  }));
  SKIP_WITHOUT_SECCOMP(seen);
  EXPECT_NE(seen.denials.find("@tried-it"), std::string::npos) << seen.denials;
}

/// A tenth of a CPU if others don't evict its caches, plus 60 ms for the first thousand and the
/// start.
std::uint64_t most_cpu_ms(const Seen& seen) {
  return kTimesCpu * (static_cast<std::uint64_t>(seen.usage.wall_ms) / 8 + 60);
}

TEST(Notifier, AFloodIsCountedExactlyAndCostsLittle) {
  constexpr int kCalls = 6000;
  const Seen seen =
      run_to_end(denying([] { return count_answers(1, kCalls, EACCES) == kCalls ? 0 : 1; }));
  SKIP_WITHOUT_SECCOMP(seen);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_NE(seen.denials.find("*6000@"), std::string::npos) << seen.denials;
  EXPECT_GE(seen.usage.wall_ms, 5000 / 16);  // at most 16 a millisecond after the first 1,000
  EXPECT_LE(seen.cpu_ms, most_cpu_ms(seen));
}

TEST(Notifier, DistinctNamesAreBoundedAndNothingIsLost) {
  const Seen seen = run_to_end(denying([] {
    int right = 0;
    for (std::uint64_t argument = 100; argument < 500; ++argument)
      right += count_answers(argument, 1, EACCES);
    return right == 400 ? 0 : 1;
  }));
  SKIP_WITHOUT_SECCOMP(seen);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_EQ(std::ranges::count(seen.denials, '\n'), 257);
  EXPECT_NE(seen.denials.find("others*144@"), std::string::npos) << seen.denials;
}

TEST(Notifier, DeniedKillEndsTheRunAndNamesTheCall) {
  FakeRun run = denying([] {
    count_answers(1, 1, EACCES);
    return 0;
  });
  run.settings.kill_on_denied = true;
  const Seen seen = run_to_end(run);
  SKIP_WITHOUT_SECCOMP(seen);
  EXPECT_EQ(seen.verdict, "denied call" + std::to_string(SYS_swapon) + "(1)");
}

TEST(Notifier, DeniedKillLetsARunWithoutDenialsEnd) {
  FakeRun run = denying([] { return 0; });
  run.settings.kill_on_denied = true;
  const Seen seen = run_to_end(run);
  SKIP_WITHOUT_SECCOMP(seen);
  EXPECT_EQ(seen.verdict, "exited 0");
}

TEST(Notifier, CallersKilledWhileTheyWaitAreNormal) {
  const Seen seen = run_to_end(denying([] {
    for (int round = 0; round < 50; ++round) {
      const pid_t child = ::fork();
      if (child == 0) {
        for (;;) count_answers(1, 1, EACCES);
      }
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    return count_answers(7, 1, ENOSYS) == 1 ? 0 : 1;
  }));
  SKIP_WITHOUT_SECCOMP(seen);
  EXPECT_EQ(seen.verdict, "exited 0");
}

/// Results of a test process, in shared memory.
struct SharedCounts {
  std::atomic<int> calls;
  std::atomic<int> answered;  ///< with the policy's errno
  std::atomic<int> signals;
};

SharedCounts* share_counts() {
  void* const room = ::mmap(nullptr, sizeof(SharedCounts), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (room) SharedCounts{};
}

TEST(Notifier, ACallWhoseAnswerIsDelayedIsNotInterruptedByASignal) {
  constexpr int kCalls = 3000;
  static SharedCounts* counts = nullptr;
  counts = share_counts();
  const Filtered child(SYS_swapon, [] {
    struct sigaction action{};  // without SA_RESTART
    action.sa_handler = [](int) { ++counts->signals; };
    ::sigaction(SIGUSR1, &action, nullptr);
    while (counts->calls < kCalls) {
      counts->answered += count_answers(1, 1, EACCES);
      ++counts->calls;
    }
  });
  if (!child.listener.valid()) GTEST_SKIP() << "no seccomp listener here";
  auto loop = EventLoop::make();
  ASSERT_TRUE(loop);
  supervise::Notifier notifier(*loop, child.listener.get(), {.explain = explain, .kill = {}});
  ASSERT_TRUE(notifier.start());
  int sent = 0;
  while (counts->calls < kCalls) {
    ASSERT_TRUE(loop->run_once());
    // Writable means: a call was received and has no answer yet. Nothing answers it between two
    // rounds.
    pollfd listener{.fd = child.listener.get(), .events = POLLOUT};
    if (::poll(&listener, 1, 0) != 1 || (listener.revents & POLLOUT) == 0) continue;
    ASSERT_EQ(::kill(child.pid, SIGUSR1), 0);
    ++sent;
  }
  EXPECT_GT(sent, 0) << "no received call ever waited: it was delayed before it was received";
  EXPECT_EQ(counts->answered, kCalls);
  EXPECT_GT(counts->signals, 0);
}

TEST(Notifier, AFloodFromManyProcessesIsCountedExactlyAndCostsLittle) {
  const Seen seen = run_to_end(denying([] {
    for (int child = 0; child < 40; ++child)
      if (::fork() == 0) ::_exit(count_answers(1, 150, EACCES) == 150 ? 0 : 1);
    int status = 0;
    int failed = 0;
    while (::wait(&status) > 0) failed += status == 0 ? 0 : 1;
    return failed;
  }));
  SKIP_WITHOUT_SECCOMP(seen);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_NE(seen.denials.find("*6000@"), std::string::npos) << seen.denials;
  EXPECT_LE(seen.cpu_ms, most_cpu_ms(seen));
}

TEST(Notifier, CallersKilledWhileTheirAnswerIsDelayedLeaveTheOthersAnswered) {
  const Seen seen = run_to_end(denying([] {
    int right = count_answers(1, 1100, EACCES);
    for (int round = 0; round < 50; ++round) {
      const pid_t child = ::fork();
      if (child == 0) {
        for (;;) count_answers(1, 1, EACCES);
      }
      right += count_answers(1, 20, EACCES);
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    return right == 2100 ? 0 : 1;
  }));
  SKIP_WITHOUT_SECCOMP(seen);
  EXPECT_EQ(seen.verdict, "exited 0");
}

}  // namespace
}  // namespace sbx::test
