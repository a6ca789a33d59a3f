#include "supervise/task_limit.hpp"

#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "fake_sandbox.hpp"

namespace sbx::test {
namespace {

using supervise::TaskLimit;

/// A child of the test that waits in fork(2), until it is told how that goes on.
class Maker {
 public:
  Maker() : filtered_(SYS_clone, [this] { fork_once(); }) {
    std::memset(&call_, 0, sizeof call_);
    if (filtered_.listener.valid())
      EXPECT_EQ(::ioctl(filtered_.listener.get(), SECCOMP_IOCTL_NOTIF_RECV, &call_), 0);
  }
  [[nodiscard]] bool waits() const { return filtered_.listener.valid(); }
  [[nodiscard]] pid_t thread() const { return static_cast<pid_t>(call_.notification.pid); }
  /// Returns when the new process has begun.
  void let_go_on() {
    answer({.id = call_.notification.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE});
    char byte = 0;
    EXPECT_EQ(::read(begun_.read.get(), &byte, 1), 1);
  }
  void refuse() { answer({.id = call_.notification.id, .error = -EAGAIN}); }
  void end() const {
    ::kill(filtered_.pid, SIGKILL);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(filtered_.pid), &info, WEXITED | WNOWAIT);
  }

 private:
  void fork_once() const {
    if (::fork() == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      (void)!::write(begun_.write.get(), "b", 1);
    }
    for (;;) ::pause();
  }
  void answer(seccomp_notif_resp response) const {
    EXPECT_EQ(::ioctl(filtered_.listener.get(), SECCOMP_IOCTL_NOTIF_SEND, &response), 0);
  }

  TestPipe begun_;
  Filtered filtered_;
  union {
    seccomp_notif notification;
    char room[512];
  } call_;
};

#define SKIP_WITHOUT(maker) \
  if (!(maker).waits()) GTEST_SKIP() << "no seccomp listener here"

/// Waits for what the kernel shows of a thread that runs.
bool may_at_last(TaskLimit& limit, const Maker& maker) {
  while (limit.ask(maker.thread()) == EAGAIN) {
  }
  return true;
}

TEST(TaskLimit, CountsWhatWasAllowedAndHasNotBegun) {
  Maker first;
  Maker second;
  SKIP_WITHOUT(first);
  TaskLimit limit(::getpid(), 3);
  EXPECT_EQ(limit.ask(first.thread()), std::nullopt);
  EXPECT_EQ(limit.ask(second.thread()), EAGAIN) << "the first has not begun";
  first.let_go_on();
  EXPECT_EQ(limit.ask(second.thread()), EAGAIN) << "three are there";
}

TEST(TaskLimit, IsReachedExactly) {
  Maker first;
  Maker second;
  Maker third;
  SKIP_WITHOUT(first);
  TaskLimit limit(::getpid(), 5);
  EXPECT_EQ(limit.ask(first.thread()), std::nullopt);
  EXPECT_EQ(limit.ask(second.thread()), std::nullopt);
  EXPECT_EQ(limit.ask(third.thread()), EAGAIN);
  first.let_go_on();
  EXPECT_EQ(limit.ask(third.thread()), EAGAIN) << "one is there, and one has not begun";
  second.end();
  EXPECT_TRUE(may_at_last(limit, third))
      << "four are there: an ended one counts until it is reaped";
}

TEST(TaskLimit, ForgetsWhatDidNotBegin) {
  Maker first;
  Maker second;
  SKIP_WITHOUT(first);
  TaskLimit limit(::getpid(), 3);
  EXPECT_EQ(limit.ask(first.thread()), std::nullopt);
  EXPECT_EQ(limit.ask(second.thread()), EAGAIN);
  first.refuse();
  EXPECT_TRUE(may_at_last(limit, second));
}

TEST(TaskLimit, CountsOnceWhoAsksAgain) {
  Maker first;
  SKIP_WITHOUT(first);
  TaskLimit limit(::getpid(), 2);
  // As where a signal comes before the new process is there.
  for (int i = 0; i < 5; ++i) EXPECT_EQ(limit.ask(first.thread()), std::nullopt);
  first.let_go_on();
  EXPECT_EQ(limit.ask(first.thread()), EAGAIN);
}

TEST(TaskLimit, OfNoneAllowsAnyNumber) {
  TaskLimit limit(::getpid(), 0);
  EXPECT_EQ(limit.ask(::getpid()), std::nullopt);
}

// Here the makers are what the inits of calls are in a session: children of the holder.
TEST(TaskLimit, OfACallCountsWhatOtherCallsHave) {
  Maker first;
  Maker second;
  Maker third;
  SKIP_WITHOUT(first);
  TaskLimit one = TaskLimit::of_call(::getpid(), 2);
  TaskLimit other = TaskLimit::of_call(::getpid(), 2);
  EXPECT_EQ(one.ask(first.thread()), std::nullopt) << "two were free";
  first.let_go_on();
  EXPECT_EQ(other.ask(second.thread()), std::nullopt) << "one is there";
  second.let_go_on();
  EXPECT_EQ(one.ask(third.thread()), EAGAIN) << "two are there, one of them is another call's";
  TaskLimit larger = TaskLimit::of_call(::getpid(), 3);
  EXPECT_EQ(larger.ask(third.thread()), std::nullopt);
}

}  // namespace
}  // namespace sbx::test
