#include "network/network_namespace.hpp"
#include "base/process.hpp"

#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

namespace sbx::network {
namespace {

constexpr std::size_t kMostAtOnce = 64;

struct Task {
  int user_space;
  int space;
  unsigned uid;
  unsigned gid;
  SocketRequest request;
  std::size_t count;
  std::array<int, kMostAtOnce> fds;
  std::size_t made;
  int error;
};

/// Shares memory and descriptors with the supervisor, which waits: only its credentials and
/// namespaces are its own. Calls nothing but the kernel.
int make_sockets(void* argument) {
  Task& task = *static_cast<Task*>(argument);
  const auto failed = [&task](long answer) {
    if (answer < 0) task.error = errno;
    return answer < 0;
  };
  // Into the user namespace first: an ordinary user may join a network namespace only with
  // CAP_SYS_ADMIN in both, setns(2).
  if (failed(::setns(task.user_space, CLONE_NEWUSER)) || failed(::setns(task.space, CLONE_NEWNET)))
    return 1;
  // The bare calls: glibc's would change every thread of a process that shares this memory.
  if (failed(::syscall(SYS_setresgid, task.gid, task.gid, task.gid)) ||
      failed(::syscall(SYS_setresuid, task.uid, task.uid, task.uid)))
    return 1;
  while (task.made < task.count) {
    const int fd = ::socket(task.request.domain, task.request.type | SOCK_NONBLOCK | SOCK_CLOEXEC,
                            task.request.protocol);
    if (failed(fd)) return 1;
    task.fds[task.made++] = fd;
  }
  return 0;
}

}  // namespace

Result<std::vector<UniqueFd>> NetworkNamespace::make(const SocketRequest& request,
                                                     std::size_t count) const {
  const UniqueFd user_space(::ioctl(space_.get(), NS_GET_USERNS));
  if (!user_space.valid())
    return fail_errno(ErrorKind::host, "no-socket", "cannot look at the sandbox's namespaces");
  Task task{.user_space = user_space.get(),
            .space = space_.get(),
            .uid = uid_,
            .gid = gid_,
            .request = request,
            .count = std::min(count, kMostAtOnce)};
  // Not on this stack, whose pages would all be touched, and not shared with another run.
  constexpr std::size_t kStack = 32'768;
  const auto stack =
      std::make_unique_for_overwrite<std::max_align_t[]>(kStack / sizeof(std::max_align_t));
  const pid_t pid = ::clone(make_sockets, stack.get() + kStack / sizeof(std::max_align_t),
                            CLONE_VM | CLONE_VFORK | CLONE_FILES, &task);
  if (pid < 0) task.error = errno;
  if (pid > 0) process::wait_for(pid, __WALL);
  std::vector<UniqueFd> sockets;
  for (std::size_t i = 0; i < task.made; ++i) sockets.emplace_back(task.fds[i]);
  if (sockets.empty())
    return fail_errno(ErrorKind::host, "no-socket", "cannot make a socket in the sandbox's network",
                      task.error);
  return sockets;
}

}  // namespace sbx::network
