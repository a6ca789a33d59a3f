// The line on a terminal about work that takes long, by a clock of the test's own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <string>

#include "base/progress.hpp"
#include "base/unique_fd.hpp"

namespace sbx {
namespace {

constexpr std::uint64_t kSecond = 1'000'000;

class ProgressOnATerminal : public testing::Test {
 protected:
  ProgressOnATerminal() {
    int master = -1;
    int slave = -1;
    EXPECT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
    master_ = UniqueFd(master);
    slave_ = UniqueFd(slave);
    EXPECT_EQ(::fcntl(master, F_SETFL, O_NONBLOCK), 0);
  }
  /// What the terminal was sent since this was asked last.
  std::string shown() {
    std::array<char, 4096> text{};
    const ssize_t got = ::read(master_.get(), text.data(), text.size());
    return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : std::string();
  }
  Progress::Clock clock() {
    return [this] { return now; };
  }
  std::uint64_t now = kSecond;
  UniqueFd master_;
  UniqueFd slave_;
};

TEST_F(ProgressOnATerminal, IsShownAfterASecondAndTakenAway) {
  Progress progress(slave_.get(), false, clock());
  progress.tick("cell 1 of 2");
  EXPECT_EQ(shown(), "");
  now += kSecond;
  progress.tick("cell 1 of 2");
  EXPECT_EQ(shown(), "\r\033[Ksbx: cell 1 of 2, 1 s");
  progress.tick("cell 1 of 2");
  EXPECT_EQ(shown(), "");  // ten times a second at most
  progress.clear();
  EXPECT_EQ(shown(), "\r\033[K");
  progress.clear();
  EXPECT_EQ(shown(), "");
  progress.begin();
  progress.tick("cell 2 of 2");
  EXPECT_EQ(shown(), "");  // a second of its own
}

TEST_F(ProgressOnATerminal, LeavesALineOfOthersAlone) {
  Progress progress(slave_.get(), false, clock());
  now += 5 * kSecond;
  progress.clear(true);  // "50 %" without a line feed
  progress.tick("x");
  EXPECT_EQ(shown(), "");
  progress.clear();
  progress.tick(std::string(200, 'x'));
  EXPECT_EQ(shown().size(), 4 + 79U);  // of 80 columns
}

TEST_F(ProgressOnATerminal, ShowsEachPieceOfCopyingAfterASecondOfItsOwn) {
  constexpr std::uint64_t kMebibyte = 1 << 20;
  Progress progress(slave_.get(), false, clock());
  const Copied copied = copies_shown_by(progress);
  now += 30 * kSecond;  // the command ran so long
  copied(kMebibyte);
  EXPECT_EQ(shown(), "");
  now += kSecond;
  copied(kMebibyte);
  EXPECT_EQ(shown(), "\r\033[Ksbx: 2 MiB copied, 1 s");
  copied(0);
  EXPECT_EQ(shown(), "\r\033[K");
  copied(kMebibyte);
  now += 2 * kSecond;
  copied(kMebibyte);
  EXPECT_EQ(shown(), "\r\033[Ksbx: 2 MiB copied, 2 s");
  {
    const CopyingEnds ends(copied);
  }
  EXPECT_EQ(shown(), "\r\033[K");
}

TEST_F(ProgressOnATerminal, LeavesTheLastLineOfAProgramToItsCopies) {
  Progress progress(slave_.get(), false, clock());
  const Copied copied = copies_shown_by(progress);
  progress.clear(true);
  for (int i = 0; i < 2; ++i) {
    copied(1);
    now += 2 * kSecond;
    copied(1);
  }
  EXPECT_EQ(shown(), "");
  Progress quiet(slave_.get(), true, clock());
  EXPECT_FALSE(copies_shown_by(quiet));
}

TEST_F(ProgressOnATerminal, IsNotShownQuietlyOrToAPipe) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const UniqueFd from(pipe[0]);
  const UniqueFd to(pipe[1]);
  for (const auto& [descriptor, quiet] : {std::pair(to.get(), false), {slave_.get(), true}}) {
    Progress progress(descriptor, quiet, clock());
    EXPECT_FALSE(progress.is_shown());
    now += 5 * kSecond;
    progress.tick("x");
    progress.clear();
  }
  EXPECT_EQ(shown(), "");
  char byte = 0;
  EXPECT_EQ(::read(from.get(), &byte, 1), -1);
}

}  // namespace
}  // namespace sbx
