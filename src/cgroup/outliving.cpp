#include "cgroup/outliving.hpp"
#include "base/process.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstddef>
#include <memory>

namespace sbx::cgroup {
namespace {

int run_work(void* work) {
  (*static_cast<const std::function<void()>*>(work))();
  return 0;
}

}  // namespace

void do_outliving(const std::function<void()>& work) {
  // Not on this stack, whose pages would all be touched, and not shared with another run.
  constexpr std::size_t kStack = 65'536;
  const auto stack =
      std::make_unique_for_overwrite<std::max_align_t[]>(kStack / sizeof(std::max_align_t));
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, &before);
  auto* const argument = const_cast<void*>(static_cast<const void*>(&work));
  const pid_t pid = ::clone(run_work, stack.get() + kStack / sizeof(std::max_align_t),
                            CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_FS, argument);
  if (pid < 0) work();
  if (pid > 0) process::wait_for(pid, __WALL);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace sbx::cgroup
