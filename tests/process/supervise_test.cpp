#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/mount.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.hpp"
#include "fake_sandbox.hpp"

namespace sbx::test {
namespace {

using namespace std::chrono_literals;

int wait_for_ever() {
  for (;;) ::pause();
}
int spin() {
  for (volatile std::uint64_t turn = 0;;) turn = turn + 1;
}

/// Reports an event of the main process to the test, through a descriptor that doesn't end with the
/// process.
void announce(const TestPipe& pipe) {
  (void)!::write(pipe.write.get(), "x", 1);
}
void await(const TestPipe& pipe) {
  char byte = 0;
  ASSERT_EQ(::read(pipe.read.get(), &byte, 1), 1);
}

supervise::Settings captured_with(Milliseconds wall_time) {
  return {.budgets = {.wall_time = wall_time},
          .stdout_cap = Bytes{1 << 20},
          .stderr_cap = Bytes{1 << 20},
          .capture = true};
}

TEST(Supervisor, TwoInOneLoopHaveTheirOwnBudgetsAndOutput) {
  const auto sleeps = [] {
    (void)!::write(STDOUT_FILENO, "sleeps", 6);
    ::pause();
    return 0;
  };
  const auto ends = [] {
    (void)!::write(STDOUT_FILENO, "ends", 4);
    return 3;
  };
  const auto [first, second] =
      run_together({.main = sleeps, .settings = captured_with(Milliseconds{200})},
                   {.main = ends, .settings = captured_with(Milliseconds{60'000})});
  EXPECT_EQ(first.verdict, "over-budget wall_time");
  EXPECT_EQ(first.out.text, "sleeps");
  EXPECT_EQ(second.verdict, "exited 3");
  EXPECT_EQ(second.out.text, "ends");
}

TEST(Supervisor, PassesOnWhatAnEndedProgramSent) {
  TestPipe looks;
  FakeRun run{.main = [] { return 0; }};
  run.settings.attach = [](EventLoop& loop) {
    // Something happens now and then, as on a connection.
    static std::function<void()> again;
    again = [&loop] { loop.after(1ms, again); };
    again();
    return Status();
  };
  run.settings.sends = [&looks, left = 5]() mutable {
    announce(looks);
    return --left > 0;
  };
  EXPECT_EQ(run_to_end(run).verdict, "exited 0");
  looks.write.reset();
  EXPECT_EQ(looks.read_all(), "xxxxx");
}

TEST(Supervisor, DoesNotWaitForeverForAReaderOfAConnection) {
  FakeRun run{.main = [] { return 0; }};
  run.settings.sends = [] { return true; };
  EXPECT_EQ(run_to_end(run).verdict, "exited 0");
}

TEST(Supervisor, PassesOnNothingOfAProgramThatItKilled) {
  TestPipe looks;
  FakeRun run{.main = wait_for_ever};
  run.settings.budgets.wall_time = 50ms;
  run.settings.sends = [&looks] {
    announce(looks);
    return true;
  };
  EXPECT_EQ(run_to_end(run).verdict, "over-budget wall_time");
  looks.write.reset();
  EXPECT_EQ(looks.read_all(), "");
}

TEST(Verdicts, AnExitStatusIsPassedOn) {
  const Seen seen = run_to_end({.main = [] { return 42; }});
  EXPECT_EQ(seen.verdict, "exited 42");
  EXPECT_EQ(seen.detail, "the command exited with status 42");
}

TEST(Verdicts, ASignalIsNamed) {
  const Seen seen = run_to_end({.main = [] { return ::raise(SIGKILL); }});
  EXPECT_EQ(seen.verdict, "signaled 9");
  EXPECT_EQ(seen.detail, "killed by signal 9, SIGKILL");
}

TEST(Verdicts, WallTimeEndsASleeper) {
  FakeRun run{.main = wait_for_ever};
  run.settings.budgets.wall_time = 50ms;
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "over-budget wall_time");
  EXPECT_EQ(seen.detail, "wall-time budget of 50 ms spent (limits.wall_time)");
  EXPECT_GE(seen.usage.wall_ms, 50U);
}

TEST(Verdicts, AnEndBeforeTheWallTimeIsAnExit) {
  FakeRun run{.main = [] { return 0; }};
  run.settings.budgets.wall_time = 60s;
  EXPECT_EQ(run_to_end(run).verdict, "exited 0");
}

TEST(Verdicts, GraceSendsSigtermFirstAndTheVerdictStaysWallTime) {
  TestPipe ready, told;
  FakeRun run{.main = [&] {
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &term, nullptr);
    announce(ready);
    int signal = 0;
    ::sigwait(&term, &signal);
    announce(told);
    return 0;
  }};
  run.before_supervising = [&] { await(ready); };  // a SIGTERM before that would end it
  run.settings.budgets.wall_time = 50ms;
  run.settings.budgets.grace = 60s;
  EXPECT_EQ(run_to_end(run).verdict, "over-budget wall_time");
  await(told);
}

TEST(Verdicts, GraceEndsForAProgramThatIgnoresSigterm) {
  FakeRun run{.main = [] {
    ::signal(SIGTERM, SIG_IGN);
    return wait_for_ever();
  }};
  run.settings.budgets.wall_time = 50ms;
  run.settings.budgets.grace = 50ms;
  EXPECT_EQ(run_to_end(run).verdict, "over-budget wall_time");
}

TEST(Verdicts, CpuTimeEndsASpinnerBySummingItsTree) {
  FakeRun run{.main = spin};
  run.settings.budgets.cpu_time = 100ms;
  run.settings.budgets.wall_time = 60s;
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "over-budget cpu_time");
  EXPECT_TRUE(seen.detail.starts_with("CPU-time budget of 100 ms spent, ")) << seen.detail;
  EXPECT_GE(seen.usage.user_ms + seen.usage.system_ms, 100U);
}

TEST(Verdicts, CpuTimeOfAllProcessesOfTheTreeIsSummed) {
  FakeRun run{.main = [] {
    for (int child = 0; child < 3; ++child)
      if (::fork() == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // as in a PID namespace
        spin();
      }
    ::waitpid(-1, nullptr, 0);
    return 0;
  }};
  run.settings.budgets.cpu_time = 200ms;
  run.settings.budgets.cpus = 3;
  run.settings.budgets.wall_time = 60s;
  EXPECT_EQ(run_to_end(run).verdict, "over-budget cpu_time");
}

TEST(Verdicts, SleepingCostsNoCpuTime) {
  FakeRun run{.main = wait_for_ever};
  run.settings.budgets.cpu_time = 50ms;
  run.settings.budgets.wall_time = 200ms;
  EXPECT_EQ(run_to_end(run).verdict, "over-budget wall_time");
}

TEST(Verdicts, TheKernelsCpuLimitCountsAsCpuTime) {
  FakeRun run{.main = [] {
    const rlimit limit{.rlim_cur = 1, .rlim_max = 1};
    ::setrlimit(RLIMIT_CPU, &limit);
    return spin();
  }};
  // That limit counts whole ticks of whatever ran at the tick; the sum counts time.
  run.settings.budgets.cpu_time = 600ms;
  run.settings.budgets.cpus = 1;
  // Otherwise polling would be first: give it nothing to see.
  run.adjust = [](supervise::Tree::Handles& handles, int&) { handles.pid = -1; };
  const std::string verdict = run_to_end(run).verdict;
  EXPECT_EQ(verdict, "over-budget cpu_time");
}

TEST(Verdicts, ASigxcpuThatNobodyEarnedIsASignal) {
  FakeRun run{.main = [] { return ::raise(SIGXCPU); }};
  run.settings.budgets.cpu_time = 60s;
  EXPECT_EQ(run_to_end(run).verdict, "signaled 24");
}

TEST(Verdicts, SigxfszIsTheFileSizeBudget) {
  FakeRun run{.main = [] {
    const rlimit limit{.rlim_cur = 1000, .rlim_max = 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const UniqueFd file = temporary_file();
    const std::string text(2000, 'x');
    (void)!::write(file.get(), text.data(), text.size());
    (void)!::write(file.get(), text.data(), text.size());
    return 0;
  }};
  run.settings.budgets.file_size = Bytes{1000};
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "over-budget file_size");
  EXPECT_EQ(seen.limits, "file_size=1000\n");
}

TEST(Verdicts, AnInitThatEndsWithoutAWordIsLost) {
  FakeRun run{.main = [] { return 0; }};
  run.reports = false;
  EXPECT_EQ(run_to_end(run).verdict, "lost");
}

TEST(Verdicts, AnInitThatStaysIsKilledAndTheCommandsStatusStands) {
  FakeRun run{.main = [] { return 9; }};
  run.init_stays = true;
  EXPECT_EQ(run_to_end(run).verdict, "exited 9");
}

TEST(Verdicts, AnEndThatWasReportedBeforeTheDeadlineWins) {
  // At the supervisor's first look both exist: the message, and a deadline that has passed.
  TestPipe reported;
  FakeRun run{.main = [] { return 5; }};
  run.settings.budgets.wall_time = 1ms;
  run.adjust = [](supervise::Tree::Handles& handles, int&) {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(handles.pid), &info, WEXITED | WNOWAIT);
  };
  EXPECT_EQ(run_to_end(run).verdict, "exited 5");
}

/// A small tmpfs; invalid if mounting is not allowed.
UniqueFd small_tmpfs() {
  const UniqueFd context(static_cast<int>(::syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC)));
  ::syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_STRING, "size", "64k", 0);
  ::syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_STRING, "nr_inodes", "4", 0);
  ::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0);
  const UniqueFd mount(static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, 0)));
  return UniqueFd(::fcntl(mount.get(), F_DUPFD_CLOEXEC, 801));
}

TEST(Verdicts, AFullScratchIsALimitMetAndTheCommandsStatusStands) {
  const UniqueFd scratch = small_tmpfs();
  if (!scratch.valid()) GTEST_SKIP() << "needs the right to mount a tmpfs";
  FakeRun run{.main = [&] {
    const UniqueFd file(::openat(scratch.get(), "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return sys::write_all(file.get(), std::string(100'000, 'x')).has_value() ? 0 : 1;
  }};
  run.settings.budgets.disk = Bytes{65536};
  run.adjust = [&](supervise::Tree::Handles&, int& disk) { disk = scratch.get(); };
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "exited 1");
  EXPECT_EQ(seen.limits, "disk=65536\n");
}

TEST(Verdicts, AScratchWithRoomLeftIsNoLimitMet) {
  const UniqueFd scratch = small_tmpfs();
  if (!scratch.valid()) GTEST_SKIP() << "needs the right to mount a tmpfs";
  FakeRun run{.main = [] { return 0; }};
  run.adjust = [&](supervise::Tree::Handles&, int& disk) { disk = scratch.get(); };
  EXPECT_EQ(run_to_end(run).limits, "");
}

TEST(Verdicts, ThirtyTwoDescriptorsAreEnough) {
  FakeRun run{.main = [] { return sys::write_all(1, "ok").has_value() ? 0 : 1; }};
  run.settings.budgets.wall_time = 60s;
  run.settings.budgets.cpu_time = 60s;
  run.settings.capture = true;
  run.before_supervising = [] {
    const rlimit limit{.rlim_cur = 32, .rlim_max = 32};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  };
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_EQ(seen.out.text, "ok");
}

struct EndingSignals : testing::TestWithParam<int> {};

TEST_P(EndingSignals, GoToTheCommandAndTheOutcomeIsCancelledWhateverItReturns) {
  static int wanted = 0;
  wanted = GetParam();
  TestPipe ready, told;
  FakeRun run{.main = [&] {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, wanted);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    announce(ready);
    int signal = 0;
    ::sigwait(&set, &signal);
    announce(told);
    return 0;
  }};
  Running running = start(run);
  await(ready);
  ASSERT_EQ(::kill(running.supervisor(), GetParam()), 0);
  const Seen seen = running.finish();
  EXPECT_EQ(seen.verdict, "cancelled " + std::to_string(GetParam()));
  await(told);
}

INSTANTIATE_TEST_SUITE_P(Each, EndingSignals, testing::Values(SIGINT, SIGTERM, SIGHUP, SIGQUIT));

TEST(Signals, ASecondSignalKillsAtOnce) {
  TestPipe ready, told;
  FakeRun run{.main = [&] {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    announce(ready);
    int signal = 0;
    ::sigwait(&set, &signal);
    announce(told);
    return wait_for_ever();
  }};
  Running running = start(run);
  await(ready);
  const std::uint64_t before = sys::now_microseconds();
  ::kill(running.supervisor(), SIGINT);
  await(told);
  ::kill(running.supervisor(), SIGTERM);
  EXPECT_EQ(running.finish().verdict, "cancelled 2");
  EXPECT_LT(sys::now_microseconds() - before, 1'900'000U);  // less than the 2 s of grace
}

TEST(Signals, TheGraceOfACancelledRunEnds) {
  TestPipe ready;
  FakeRun run{.main = [&] {
    ::signal(SIGINT, SIG_IGN);
    announce(ready);
    return wait_for_ever();
  }};
  Running running = start(run);
  await(ready);
  const std::uint64_t before = sys::now_microseconds();
  ::kill(running.supervisor(), SIGINT);
  EXPECT_EQ(running.finish().verdict, "cancelled 2");
  EXPECT_GE(sys::now_microseconds() - before, 2'000'000U);
}

TEST(Signals, OneThatTheCallerIgnoredStaysIgnored) {
  TestPipe ready, go;
  FakeRun run{.main = [&] {
    announce(ready);
    char byte = 0;
    return ::read(go.read.get(), &byte, 1) == 1 ? 4 : 5;
  }};
  ::signal(SIGHUP, SIG_IGN);
  Running running = start(run);
  ::signal(SIGHUP, SIG_DFL);
  await(ready);
  ::kill(running.supervisor(), SIGHUP);
  announce(go);
  EXPECT_EQ(running.finish().verdict, "exited 4");
}

TEST(Signals, StopStopsTheCommandFirstAndContinueWakesBoth) {
  TestPipe ready, go;
  FakeRun run{.main = [&] {
    announce(ready);
    char byte = 0;
    return ::read(go.read.get(), &byte, 1) == 1 ? 4 : 5;
  }};
  // A process group of its own, whose parent is in the same session: otherwise the kernel ignores
  // SIGTSTP.
  run.before_supervising = [] { ::setpgid(0, 0); };
  Running running = start(run);
  await(ready);
  ::kill(running.supervisor(), SIGTSTP);
  int status = 0;
  ASSERT_EQ(::waitpid(running.supervisor(), &status, WUNTRACED), running.supervisor());
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_EQ(WSTOPSIG(status), SIGTSTP);
  announce(go);
  ::kill(running.supervisor(), SIGCONT);
  EXPECT_EQ(running.finish().verdict, "exited 4");
}

TEST(Signals, TheScopeRestoresMaskAndDispositions) {
  sigset_t before, after;
  ::sigprocmask(SIG_SETMASK, nullptr, &before);
  {
    auto scope = supervise::SignalScope::make();
    ASSERT_TRUE(scope);
    struct sigaction pipe{};
    ::sigaction(SIGPIPE, nullptr, &pipe);
    EXPECT_EQ(pipe.sa_handler, SIG_IGN);
    ::raise(SIGTERM);  // would kill the test
    EXPECT_EQ(scope->next(), SIGTERM);
    EXPECT_EQ(scope->next(), 0);
  }
  ::sigprocmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < SIGRTMIN; ++signal)
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
  struct sigaction pipe{};
  ::sigaction(SIGPIPE, nullptr, &pipe);
  EXPECT_EQ(pipe.sa_handler, SIG_DFL);
}

}  // namespace
}  // namespace sbx::test
