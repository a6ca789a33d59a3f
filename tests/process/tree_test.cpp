#include "supervise/tree.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.hpp"

namespace sbx::supervise {
namespace {

/// A child that has taken the name; one of them ends at once.
pid_t child_named(const char* name, bool lives) {
  auto pipe = sys::make_pipe();
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_NAME, name);
    (void)::write(pipe->write.get(), "n", 1);
    while (lives) ::pause();
    ::_exit(0);
  }
  char named = 0;
  EXPECT_EQ(::read(pipe->read.get(), &named, 1), 1);
  return child;
}

bool is_there(pid_t child) {
  return ::waitpid(child, nullptr, WNOHANG) == 0;
}

void end(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(KeptTree, WaitsForTheKeepersSecondAndForNoOrphanOfTheCaller) {
  const pid_t orphan = child_named("daemon", true);
  const pid_t other_sandbox = child_named("sbx-init", true);
  const pid_t second = child_named("sbx-init", false);
  KeptTree::wait_for_rest({other_sandbox});
  EXPECT_EQ(::waitpid(second, nullptr, WNOHANG), -1);
  EXPECT_TRUE(is_there(orphan));
  EXPECT_TRUE(is_there(other_sandbox));
  end(orphan);
  end(other_sandbox);
}

}  // namespace
}  // namespace sbx::supervise
