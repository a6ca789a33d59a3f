#include "supervise/meters/write_meter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "fake_sandbox.hpp"

namespace sbx::test {
namespace {

constexpr int kLooks = 20;  // more than make it sure

/// An init in a PID namespace of its own, whose children stay and can't be read, as after
/// PR_SET_DUMPABLE.
class Unreadable {
 public:
  /// `number`: of the only child that is left, in that namespace.
  explicit Unreadable(pid_t number) {
    TestPipe ready;
    init_ = static_cast<pid_t>(
        ::syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, nullptr, nullptr, nullptr, 0));
    if (init_ == 0) be_init(number, ready);
    ready.write.reset();
    EXPECT_EQ(ready.read_all(), "x");
  }
  Unreadable(const Unreadable&) = delete;
  Unreadable& operator=(const Unreadable&) = delete;
  ~Unreadable() {
    if (init_ < 0) return;
    ::kill(init_, SIGKILL);
    ::waitpid(init_, nullptr, 0);
  }

  /// The process that the meter holds to be unreadable.
  [[nodiscard]] std::string found() const {
    supervise::ProcessList processes(init_, -1);
    supervise::WriteMeter meter(processes);
    for (int i = 0; i < kLooks; ++i) (void)meter.look();
    EXPECT_EQ(processes.all().size(), 1U);
    return meter.unreadable();
  }

 private:
  [[noreturn]] static void be_init(pid_t number, TestPipe& ready) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_DUMPABLE, 0);
    for (;;) {
      const pid_t child = ::fork();
      if (child == 0 && ::getpid() < number) ::_exit(0);
      if (child == 0) {
        (void)!::write(ready.write.get(), "x", 1);
        ready.write.reset();
        for (;;) ::pause();
      }
      if (child == number) break;
      ::waitpid(child, nullptr, 0);
    }
    ready.write.reset();
    for (;;) ::pause();
  }

  pid_t init_ = -1;
};

class WriteMeter : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() == 0) GTEST_SKIP() << "root reads the counters of every process";
  }
};

TEST_F(WriteMeter, ACommandThatHasYetToBeginIsNotTakenForOneThatHides) {
  EXPECT_EQ(Unreadable(2).found(), "");
}

TEST_F(WriteMeter, AnyOtherProcessThatCannotBeReadIsFound) {
  EXPECT_NE(Unreadable(3).found(), "");
}

}  // namespace
}  // namespace sbx::test
