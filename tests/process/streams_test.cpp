#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "base/sys.hpp"
#include "fake_sandbox.hpp"
#include "supervise/streams/input_relay.hpp"

namespace sbx::test {
namespace {

using namespace std::chrono_literals;
using testing::Test;

/// Writes `total` bytes of a pattern to fd 1 in blocks.
int flood(std::uint64_t total) {
  std::string block(65536, 'y');
  for (std::size_t i = 63; i < block.size(); i += 64) block[i] = '\n';
  while (total > 0) {
    const std::size_t step = static_cast<std::size_t>(std::min<std::uint64_t>(total, block.size()));
    const ssize_t written = ::write(1, block.data(), step);
    if (written < 0) return 2;
    total -= static_cast<std::uint64_t>(written);
  }
  return 0;
}

int say(const std::string& out, const std::string& err = {}) {
  const bool ok = sys::write_all(1, out).has_value() && sys::write_all(2, err).has_value();
  return ok ? 0 : 2;
}

FakeRun passing_to(const TestPipe& pipe) {
  FakeRun run;
  run.out = pipe.write.get();
  run.not_in_supervisor = {pipe.read.get(), pipe.write.get()};
  return run;
}

TEST(Streams, PassThroughToPipesByteForByte) {
  TestPipe out, err;
  FakeRun run{.main = [] { return say(std::string("a\0b\x1b[31m\xff\n", 9), "problem\n"); }};
  run.out = out.write.get();
  run.err = err.write.get();
  const Seen seen = run_to_end(run);
  out.write.reset();
  err.write.reset();
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_EQ(out.read_all(), std::string("a\0b\x1b[31m\xff\n", 9));
  EXPECT_EQ(err.read_all(), "problem\n");
  EXPECT_EQ(seen.out.bytes, 9U);
  EXPECT_FALSE(seen.out.text);
  EXPECT_FALSE(seen.out.truncated);
}

TEST(Streams, TheFirstBytesUpToTheCapGoOutAndTheRestIsCounted) {
  const UniqueFd file = temporary_file();
  FakeRun run{.main = [] { return say("0123456789abcdef", "xyz"); }};
  run.settings.passed_cap = Bytes{10};
  run.settings.on_exceed = supervise::OnExceed::drop;
  run.out = file.get();
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_EQ(content_of(file.get()), "0123456789");
  EXPECT_EQ(seen.out.bytes, 16U);
  EXPECT_EQ(seen.out.head_bytes, 10U);
  EXPECT_TRUE(seen.out.truncated);
  EXPECT_FALSE(seen.err.truncated);
}

TEST(Streams, ExactlyTheCapIsNotTruncated) {
  const UniqueFd file = temporary_file();
  FakeRun run{.main = [] { return say("0123456789"); }};
  run.settings.passed_cap = Bytes{10};
  run.settings.on_exceed = supervise::OnExceed::end_run;
  run.out = file.get();
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_FALSE(seen.out.truncated);
}

TEST(Streams, ExceedKillEndsTheRunAsOutputOverBudget) {
  TestPipe out;
  FakeRun run = passing_to(out);
  run.main = [] { return flood(UINT64_MAX); };
  run.settings.passed_cap = Bytes{1000};
  run.settings.on_exceed = supervise::OnExceed::end_run;
  const Seen seen = run_to_end(run);
  out.write.reset();
  EXPECT_EQ(seen.verdict, "over-budget output");
  EXPECT_EQ(out.read_all().size(), 1000U);
  EXPECT_NE(seen.detail.find("output.passed"), std::string::npos) << seen.detail;
}

TEST(Streams, AFileWithAPartMissingEndsTheRun) {
  const UniqueFd file = temporary_file();
  FakeRun run{.main = [] { return flood(UINT64_MAX); }};
  run.settings.passed_cap = Bytes{1000};
  run.settings.on_exceed = supervise::OnExceed::by_sink;
  run.out = file.get();
  EXPECT_EQ(run_to_end(run).verdict, "over-budget output");
  EXPECT_EQ(content_of(file.get()).size(), 1000U);
}

TEST(Streams, WhereNobodyLooksNothingIsMissing) {
  FakeRun run{.main = [] { return flood(100'000); }};
  run.settings.passed_cap = Bytes{1000};
  run.settings.on_exceed = supervise::OnExceed::by_sink;
  EXPECT_EQ(run_to_end(run).verdict, "exited 0") << "/dev/null";
  run.settings.capture = true;
  run.settings.stdout_cap = Bytes{1000};
  EXPECT_EQ(run_to_end(run).verdict, "exited 0") << "the record says so";
}

TEST(Streams, ATerminalIsShownHeadAndTail) {
  int master = -1;
  int slave = -1;
  ASSERT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  const UniqueFd screen(::fcntl(master, F_DUPFD_CLOEXEC, 801));
  UniqueFd terminal(::fcntl(slave, F_DUPFD_CLOEXEC, 801));
  ::close(master);
  ::close(slave);
  FakeRun run{.main = [] { return say("0123456789abcdefghijklmnopqrstuvwxyz"); }};
  run.settings.passed_cap = Bytes{10};
  run.settings.on_exceed = supervise::OnExceed::by_sink;
  run.out = terminal.get();
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_TRUE(seen.out.truncated);
  EXPECT_EQ(seen.out.head_bytes, 10U);
  EXPECT_EQ(seen.out.tail_bytes, 10U);
  terminal.reset();
  std::string shown;
  char block[200];
  for (ssize_t got = 0; (got = ::read(screen.get(), block, sizeof block)) > 0;)
    shown.append(block, static_cast<std::size_t>(got));
  EXPECT_EQ(shown, "0123456789\r\n… 16 bytes left out …\r\nqrstuvwxyz");
}

TEST(Streams, WhatIsTypedFollowsWhatHappenedToTheTerminalBefore) {
  int callers[2];
  int programs[2];
  ASSERT_EQ(::openpty(&callers[0], &callers[1], nullptr, nullptr, nullptr), 0);
  ASSERT_EQ(::openpty(&programs[0], &programs[1], nullptr, nullptr, nullptr), 0);
  const UniqueFd typing(callers[0]), source(callers[1]), program(programs[1]);
  const auto waiting = [&program] {
    int bytes = -1;
    return ::ioctl(program.get(), FIONREAD, &bytes) == 0 ? bytes : -1;
  };
  auto loop = EventLoop::make();
  ASSERT_TRUE(loop);
  std::vector<int> there;
  supervise::InputRelay relay(*loop, UniqueFd(programs[0]),
                              {.source = source.get(), .to_terminal = true, .before_typed = [&] {
                                 there.push_back(waiting());
                               }});
  ASSERT_TRUE(relay.start());
  ASSERT_EQ(::write(typing.get(), "ls\n", 3), 3);
  ASSERT_TRUE(loop->run_once());
  EXPECT_EQ(there, std::vector<int>{0});
  EXPECT_EQ(waiting(), 3);
}

TEST(Streams, AppendToAFileOpenedForAppending) {
  const UniqueFd file = temporary_file(O_APPEND);
  ASSERT_TRUE(sys::write_all(file.get(), "before\n"));
  FakeRun run{.main = [] { return say("after\n"); }};
  run.out = file.get();
  EXPECT_EQ(run_to_end(run).verdict, "exited 0");
  EXPECT_EQ(content_of(file.get()), "before\nafter\n");
}

TEST(Streams, ClosedStandardDescriptorsAreHarmless) {
  FakeRun run{.main = [] {
    char byte = 0;
    const bool at_end = ::read(0, &byte, 1) == 0;
    return at_end && say("to nobody\n", "nor this\n") == 0 ? 7 : 8;
  }};
  run.in = run.out = run.err = kClosed;
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "exited 7");
  EXPECT_EQ(seen.out.bytes, 10U);
}

TEST(Streams, ANonBlockingSinkThatFillsUpLosesNothingAndKeepsItsFlags) {
  TestPipe out;
  const int flags = ::fcntl(out.write.get(), F_GETFL) | O_NONBLOCK;
  ::fcntl(out.write.get(), F_SETFL, flags);
  FakeRun run = passing_to(out);
  run.main = [] { return flood(1 << 20); };
  run.settings.passed_cap = Bytes{1 << 20};
  Running running = start(run);
  std::string text;
  std::thread reader([&] {
    char block[1000];  // slowly: the relay waits for room thousands of times
    while (text.size() < 1 << 20) {
      const ssize_t got = ::read(out.read.get(), block, sizeof block);
      if (got <= 0) break;
      text.append(block, static_cast<std::size_t>(got));
    }
  });
  const Seen seen = running.finish();
  const int after = ::fcntl(out.write.get(), F_GETFL);
  out.write.reset();
  reader.join();
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_EQ(text.size(), 1U << 20);
  EXPECT_EQ(after, flags);
}

TEST(Streams, ABlockingSinkKeepsItsFlagsToo) {
  const UniqueFd file = temporary_file();
  TestPipe out;
  const int flags = ::fcntl(out.write.get(), F_GETFL);
  FakeRun run = passing_to(out);
  run.main = [] { return say("x"); };
  EXPECT_EQ(run_to_end(run).verdict, "exited 0");
  EXPECT_EQ(::fcntl(out.write.get(), F_GETFL), flags);
  EXPECT_EQ(flags & O_NONBLOCK, 0);
}

TEST(Streams, ASinkThatNobodyReadsDoesNotHoldUpTheWallTime) {
  TestPipe out;
  out.fill();
  FakeRun run = passing_to(out);
  run.main = [] { return flood(1 << 20); };
  run.settings.budgets.wall_time = 100ms;
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "over-budget wall_time");
  EXPECT_NE(seen.notes.find("stdout"), std::string::npos) << seen.notes;
}

TEST(Streams, ABlockingSocketThatNobodyReadsDoesNotHoldUpTheWallTime) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd here(::fcntl(ends[0], F_DUPFD_CLOEXEC, 801));
  const UniqueFd there(::fcntl(ends[1], F_DUPFD_CLOEXEC, 801));
  FakeRun run{.main = [] { return flood(1 << 24); }};
  run.out = there.get();
  run.settings.passed_cap = Bytes{1 << 24};
  run.settings.budgets.wall_time = 100ms;
  EXPECT_EQ(run_to_end(run).verdict, "over-budget wall_time");
}

TEST(Streams, AReaderWhoLeavesGivesTheProgramASigpipe) {
  TestPipe out;
  FakeRun run = passing_to(out);
  run.main = [] { return flood(UINT64_MAX); };
  run.settings.passed_cap = Bytes{UINT64_MAX};
  Running running = start(run);
  char byte = 0;
  ASSERT_EQ(::read(out.read.get(), &byte, 1), 1);
  out.read.reset();
  EXPECT_EQ(running.finish().verdict, "signaled 13");
}

TEST(Streams, AFullDiskIsSaidOnceAndTheStatusStaysTheCommands) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.valid());
  const UniqueFd high(::fcntl(full.get(), F_DUPFD_CLOEXEC, 801));
  FakeRun run{.main = [] { return flood(300'000) == 0 ? 5 : 6; }};
  run.out = high.get();
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "exited 5");
  EXPECT_EQ(seen.notes,
            "cannot write stdout: No space left on device; the rest of it is dropped\n");
  EXPECT_EQ(seen.write_error, "stdout 28");
  EXPECT_TRUE(seen.out.truncated);
}

TEST(Streams, OutputOfABackgroundChildJustBeforeTheEndIsNotLost) {
  TestPipe out;
  FakeRun run = passing_to(out);
  run.main = [] { return flood(60'000); };  // fits into the pipe: the main process ends at once
  EXPECT_EQ(run_to_end(run).verdict, "exited 0");
  out.write.reset();
  EXPECT_EQ(out.read_all().size(), 60'000U);
}

TEST(Streams, CaptureKeepsHeadAndTailAndCountsTheRest) {
  FakeRun run{.main = [] { return say("aaaaa\nbbbbbbbbbbbbbbbbbbbb\nccccc\n", ""); }};
  run.settings.capture = true;
  run.settings.stdout_cap = Bytes{12};
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.out.text, "aaaaa\nccccc\n");
  EXPECT_EQ(seen.out.head_bytes, 6U);
  EXPECT_EQ(seen.out.tail_bytes, 6U);
  EXPECT_EQ(seen.out.bytes, 33U);
  EXPECT_TRUE(seen.out.truncated);
  EXPECT_EQ(seen.err.text, "");
}

TEST(Streams, CaptureOfLessThanTheCapIsWhole) {
  FakeRun run{.main = [] { return say("whole\n", "too\n"); }};
  run.settings.capture = true;
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.out.text, "whole\n");
  EXPECT_EQ(seen.err.text, "too\n");
  EXPECT_FALSE(seen.out.truncated);
}

struct Flood : testing::TestWithParam<bool> {};

TEST_P(Flood, Of200MegabytesIsCountedAndTheSupervisorStaysSmall) {
  constexpr std::uint64_t kTotal = 200'000'000;
  TestPipe out;
  FakeRun run = passing_to(out);
  run.main = [] { return flood(kTotal); };
  run.settings.capture = GetParam();
  run.settings.on_exceed = supervise::OnExceed::drop;
  run.out = kNull;
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_EQ(seen.out.bytes, kTotal);
  EXPECT_EQ(seen.out.truncated, GetParam());  // /dev/null takes all that passes
  EXPECT_LT(seen.grown_kib, kMostGrowthKib);
}

INSTANTIATE_TEST_SUITE_P(Streams, Flood, testing::Bool(), [](const auto& each) {
  return std::string(each.param ? "Captured" : "PassedThrough");
});

TEST(Streams, APipeOnStdinReachesTheCommandWhole) {
  TestPipe in, out;
  ASSERT_TRUE(sys::write_all(in.write.get(), "one\ntwo\n"));
  in.write.reset();
  FakeRun run = passing_to(out);
  run.in = in.read.get();
  run.main = [] { return say(sys::read_all(0, 100).value_or("nothing")); };
  EXPECT_EQ(run_to_end(run).verdict, "exited 0");
  out.write.reset();
  EXPECT_EQ(out.read_all(), "one\ntwo\n");
}

TEST(Streams, ARunDoesNotWaitForTheEndOfItsInput) {
  TestPipe in;
  FakeRun run{.main = [] { return 3; }};
  run.in = in.read.get();
  EXPECT_EQ(run_to_end(run).verdict, "exited 3");  // in.write stays open
}

TEST(Streams, ALargeInputIsRelayedAsFastAsItIsTaken) {
  const UniqueFd file = temporary_file();
  ASSERT_TRUE(sys::write_all(file.get(), std::string(3'000'000, 'i')));
  ::lseek(file.get(), 0, SEEK_SET);
  FakeRun run{.main = [] { return sys::read_all(0, 1 << 24)->size() == 3'000'000 ? 0 : 1; }};
  run.in = file.get();
  EXPECT_EQ(run_to_end(run).verdict, "exited 0");
}

TEST(Streams, WhatTheCommandDidNotReadOfAFileIsLeftToTheCaller) {
  const UniqueFd file = temporary_file();
  ASSERT_TRUE(sys::write_all(file.get(), "first\nsecond\nthird\n"));
  ::lseek(file.get(), 0, SEEK_SET);
  FakeRun run{.main = [] {
    char line[6];
    return ::read(0, line, sizeof line) == 6 ? 0 : 1;
  }};
  run.in = file.get();
  EXPECT_EQ(run_to_end(run).verdict, "exited 0");
  EXPECT_EQ(::lseek(file.get(), 0, SEEK_CUR), 6);
}

TEST(Streams, InputFromANamedFile) {
  FakeRun run{.main = [] { return sys::read_all(0, 1 << 20)->starts_with("root:") ? 0 : 1; }};
  run.from = supervise::StdinFrom::file;
  run.stdin_file = "/etc/passwd";
  EXPECT_EQ(run_to_end(run).verdict, "exited 0");
  run.stdin_file = "/etc/does-not-exist";
  EXPECT_EQ(run_to_end(run).verdict, "error cannot-open");
}

TEST(Streams, NullInputIsAtItsEnd) {
  TestPipe in;
  FakeRun run{.main = [] { return sys::read_all(0, 10)->empty() ? 0 : 1; }};
  run.in = in.read.get();
  run.from = supervise::StdinFrom::null;
  EXPECT_EQ(run_to_end(run).verdict, "exited 0");
}

/// A terminal of the test; the supervisor gets `slave`.
struct Terminal {
  UniqueFd master;
  UniqueFd slave;
  Terminal() {
    int ends[2] = {-1, -1};
    if (::openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr) != 0) std::abort();
    master = UniqueFd(::fcntl(ends[0], F_DUPFD_CLOEXEC, 801));
    slave = UniqueFd(::fcntl(ends[1], F_DUPFD_CLOEXEC, 801));
    ::close(ends[0]);
    ::close(ends[1]);
    termios raw{};
    ::tcgetattr(slave.get(), &raw);
    raw.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    ::tcsetattr(slave.get(), TCSANOW, &raw);
  }
  /// The output so far.
  [[nodiscard]] std::string drain() const {
    std::string text;
    ::fcntl(master.get(), F_SETFL, O_RDWR | O_NONBLOCK);
    char block[4096];
    for (ssize_t got = 0; (got = ::read(master.get(), block, sizeof block)) > 0;)
      text.append(block, static_cast<std::size_t>(got));
    return text;
  }
};

TEST(Streams, ATerminalShowsColoursButNoOtherEscapes) {
  Terminal terminal;
  FakeRun run{.main = [] { return say("\x1b[1;31mred\x1b[0m\r\n\x1b]0;title\a\x1b[2J"); }};
  run.out = terminal.slave.get();
  EXPECT_EQ(run_to_end(run).verdict, "exited 0");
  EXPECT_EQ(terminal.drain(), "\x1b[1;31mred\x1b[0m\r\n^[]0;title^G^[[2J");
}

TEST(Streams, ATerminalOnStdinIsNotGivenAndANoteNamesTheOption) {
  Terminal terminal;
  FakeRun run{.main = [] {
    char byte = 0;
    return ::isatty(0) == 0 && ::read(0, &byte, 1) == 0 ? 0 : 1;
  }};
  run.in = terminal.slave.get();
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_NE(seen.notes.find("-i"), std::string::npos) << seen.notes;
}

TEST(Streams, ATerminalOnStdinThatIsNotReadIsNotMentioned) {
  Terminal terminal;
  FakeRun run{.main = [] { return 0; }};
  run.in = terminal.slave.get();
  const Seen seen = run_to_end(run);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_EQ(seen.notes, "");
}

TEST(Interactive, RawModeIsRestoredWhateverEndsTheRun) {
  Terminal terminal;
  termios before{};
  ASSERT_EQ(::tcgetattr(terminal.slave.get(), &before), 0);
  for (const bool killed : {false, true}) {
    TestPipe begun;
    FakeRun run{.main = [&] {
      (void)!::write(begun.write.get(), "x", 1);
      if (killed) ::pause();
      return 0;
    }};
    run.in = run.out = terminal.slave.get();
    run.settings.interactive = true;
    run.settings.budgets.wall_time = killed ? 50ms : 0ms;
    run.terminal = true;
    const Seen seen = run_to_end(run);
    EXPECT_EQ(seen.verdict, killed ? "over-budget wall_time" : "exited 0");
    termios after{};
    ASSERT_EQ(::tcgetattr(terminal.slave.get(), &after), 0);
    EXPECT_EQ(after.c_lflag, before.c_lflag);
    EXPECT_EQ(after.c_iflag, before.c_iflag);
  }
}

TEST(Interactive, WhatIsTypedArrivesAndTheSizeOfTheWindowIsPassedOn) {
  Terminal terminal;
  const winsize size{.ws_row = 33, .ws_col = 77, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(::ioctl(terminal.slave.get(), TIOCSWINSZ, &size), 0);
  ASSERT_EQ(::write(terminal.master.get(), "typed\n", 6), 6);
  FakeRun run{.main = [] {
    char line[16] = {};
    const ssize_t got = ::read(0, line, sizeof line);
    winsize seen{};
    ::ioctl(0, TIOCGWINSZ, &seen);
    return got == 6 && std::strcmp(line, "typed\n") == 0 && seen.ws_row == 33 && seen.ws_col == 77
               ? 0
               : 1;
  }};
  run.in = run.out = terminal.slave.get();
  run.settings.interactive = true;
  run.terminal = true;
  EXPECT_EQ(run_to_end(run).verdict, "exited 0");
}

}  // namespace
}  // namespace sbx::test
