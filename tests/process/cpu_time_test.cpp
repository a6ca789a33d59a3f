#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "fake_sandbox.hpp"
#include "supervise/meters/tree_clock.hpp"

namespace sbx::test {
namespace {

using namespace std::chrono_literals;

std::uint64_t own_microseconds(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec) / 1000;
}

std::uint64_t microseconds_of(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(time.tv_usec);
}

/// Uses that much CPU time in this thread.
void burn(std::uint64_t milliseconds) {
  const std::uint64_t until = own_microseconds(CLOCK_THREAD_CPUTIME_ID) + milliseconds * 1000;
  while (own_microseconds(CLOCK_THREAD_CPUTIME_ID) < until) {
  }
}

/// Uses CPU time that neither a wait nor a look at live processes finds.
int burn_in_unwaited_children(int children) {
  ::signal(SIGCHLD, SIG_IGN);
  for (int child = 0; child < children; ++child) {
    if (::fork() == 0) {
      burn(2);
      ::_exit(0);
    }
    ::wait(nullptr);  // ECHILD once the child is gone
  }
  return 0;
}

bool perf_is_allowed() {
  perf_event_attr what{};
  what.type = PERF_TYPE_SOFTWARE;
  what.config = PERF_COUNT_SW_TASK_CLOCK;
  what.size = sizeof what;
  what.exclude_kernel = 1;
  return UniqueFd(static_cast<int>(::syscall(SYS_perf_event_open, &what, 0, -1, -1, 0))).valid();
}

#define SKIP_WITHOUT_PERF() \
  if (!perf_is_allowed()) GTEST_SKIP() << "perf_event_open is refused here"

TEST(CpuTime, OfChildrenForWhomNobodyWaitsIsSpent) {
  SKIP_WITHOUT_PERF();
  FakeRun run{.main = [] { return burn_in_unwaited_children(100'000); }};
  run.settings.budgets.cpu_time = 300ms;
  run.settings.budgets.wall_time = 30s;
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "over-budget cpu_time") << seen.detail;
  EXPECT_EQ(seen.cpu_time_means, "task-clock");
  EXPECT_EQ(seen.degraded, "");
  EXPECT_GE(seen.usage.user_ms + seen.usage.system_ms, 300U);
}

TEST(CpuTime, OfChildrenForWhomNobodyWaitsBelowTheBudgetEndsNormally) {
  SKIP_WITHOUT_PERF();
  FakeRun run{.main = [] { return burn_in_unwaited_children(100); }};
  run.settings.budgets.cpu_time = 30s;
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_EQ(seen.cpu_time_means, "task-clock");
  // 200 ms, less the time used before the clock started.
  EXPECT_GE(seen.usage.user_ms + seen.usage.system_ms, 100U);
}

TEST(CpuTime, OfThreadsIsCountedOnce) {
  SKIP_WITHOUT_PERF();
  FakeRun run{.main = [] {
    std::array<std::thread, 3> threads;
    for (std::thread& thread : threads) thread = std::thread([] { burn(100); });
    for (std::thread& thread : threads) thread.join();
    if (::fork() == 0) {
      burn(100);
      ::_exit(0);
    }
    ::wait(nullptr);
    return 0;
  }};
  run.settings.budgets.cpu_time = 600ms;
  run.settings.budgets.cpus = 2;
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "exited 0") << seen.detail;
  EXPECT_EQ(seen.cpu_time_means, "task-clock");
  EXPECT_GE(seen.usage.user_ms + seen.usage.system_ms, 400U);
  EXPECT_LT(seen.usage.user_ms + seen.usage.system_ms, 500U);
}

TEST(CpuTime, WithoutTheClockIsSummedAndSaysSo) {
  FakeRun run{.main = [] {
    burn(10'000);
    return 0;
  }};
  run.settings.budgets.cpu_time = 300ms;
  run.before_supervising = [] {
    if (!refuse_call(SYS_perf_event_open, EACCES)) ::_exit(96);
  };
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "over-budget cpu_time");
  EXPECT_EQ(seen.cpu_time_means, "summed");
  EXPECT_EQ(seen.degraded, "limits.cpu_time: no task clock: perf_event_open: Permission denied\n");
  EXPECT_GE(seen.usage.user_ms + seen.usage.system_ms, 300U);
}

TEST(CpuTime, AShortRunOpensNoClock) {
  constexpr std::uint64_t kShort = 40;  // ms; the clock opens after 50
  constexpr int kAttempts = 20;
  FakeRun run{.main = [] { return 0; }};
  run.settings.budgets.cpu_time = 300ms;
  run.before_supervising = [] {  // an attempt would be reported
    if (!refuse_call(SYS_perf_event_open, EACCES)) ::_exit(96);
  };
  for (int i = 0; i < kAttempts; ++i) {
    const Seen seen = run_to_end(run);
    ASSERT_EQ(seen.verdict, "exited 0");
    if (seen.degraded.empty()) return;
    // On a busy machine the run may have been a long one.
    ASSERT_GE(seen.usage.wall_ms, kShort) << seen.degraded;
  }
  GTEST_SKIP() << "none of " << kAttempts << " runs took less than " << kShort << " ms";
}

TEST(CpuTime, IsNeverSaidToBeSpentEarlyWhateverTheTreeDoes) {
  FakeRun run{.main = [] {
    for (;;) {
      if (::fork() == 0) {
        burn(1);
        ::_exit(0);
      }
      ::wait(nullptr);
    }
    return 0;
  }};
  run.settings.budgets.cpu_time = 200ms;
  run.settings.budgets.wall_time = 30s;
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "over-budget cpu_time") << seen.detail;
  EXPECT_GE(seen.usage.user_ms + seen.usage.system_ms, 200U);
}

/// Forks and waits without pause until a byte arrives, and 200 times more.
[[noreturn]] void fork_until(int told) {
  int rounds_left = 200;
  pollfd asked{.fd = told, .events = POLLIN};
  for (bool counting = false; rounds_left > 0; rounds_left -= counting ? 1 : 0) {
    if (::fork() == 0) {
      burn(1);
      ::_exit(0);
    }
    ::wait(nullptr);
    counting = counting || ::poll(&asked, 1, 0) == 1;
  }
  ::_exit(0);
}

TEST(TreeClock, FollowsATreeThatForksWhileItIsOpenedAndNeverCountsTwice) {
  SKIP_WITHOUT_PERF();
  // This process is "PID 1".
  TestPipe enough;
  const pid_t child = ::fork();
  if (child == 0) fork_until(enough.read.get());
  supervise::ProcessList processes(::getpid(), -1);
  supervise::TreeClock clock(processes);
  std::uint64_t began = 0;
  // On a busy machine every look may be too slow for a while: a valid result, but not the one
  // tested here.
  do {
    began = own_microseconds(CLOCK_MONOTONIC);
  } while (!clock.open(::getpid()) && clock.why().starts_with("processes were started faster"));
  const std::uint64_t missed = own_microseconds(CLOCK_MONOTONIC) - began;
  ASSERT_EQ(::write(enough.write.get(), "x", 1), 1);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_TRUE(clock.is_open()) << clock.why();
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  const std::uint64_t exact = microseconds_of(used.ru_utime) + microseconds_of(used.ru_stime);
  // The task clock continues while the host or an interrupt has the CPU; rusage excludes that time
  // (update_rq_clock_task).
  const std::uint64_t taken = exact / 50;
  EXPECT_LE(clock.total(false), exact + taken);
#ifdef SBX_ADDRESS_SANITIZER
  // Each fork copies the sanitizer's tables, which takes time before the child has a counter.
  const std::uint64_t uncounted = exact / 2;
#else
  // Two ticks of two processes.
  const std::uint64_t uncounted = 45'000;
#endif
  // Plus the time that one of them could use while its counter was opened.
  EXPECT_GE(clock.total(false) + uncounted + missed, exact);
}

}  // namespace
}  // namespace sbx::test
