#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// Processes, held by pidfd: a number can be another process's by the time it is used.
namespace sbx::process {

/// A pidfd of a process; invalid with errno where there is none. `flags`: of pidfd_open(2).
[[nodiscard]] UniqueFd open(pid_t pid, unsigned flags = 0);
/// The caller's own.
[[nodiscard]] UniqueFd open_self();
/// The pidfd of the process that connected to a unix socket, or that listens on the one it is
/// connected to. Before Linux 6.5 by its number, which another process may have by now. Invalid
/// when the process was reaped.
[[nodiscard]] UniqueFd of_peer(int socket);
/// False with errno (ESRCH: it has ended, EPERM).
[[nodiscard]] bool send_signal(int pidfd, int signal);
/// SIGKILL, to a process that may have ended.
void kill(int pidfd);
/// A copy of its descriptor `fd`, pidfd_getfd(2); invalid with errno.
[[nodiscard]] UniqueFd take_descriptor(int pidfd, int fd);

/// Its number in this PID namespace; -1 where it has ended or is in none below.
[[nodiscard]] pid_t number(int pidfd);
/// Its numbers from this PID namespace down to its own, "NSpid" of proc_pid_fdinfo(5). Empty where
/// it has ended.
[[nodiscard]] std::vector<pid_t> numbers(int pidfd);

/// Waits; false where it lives on.
[[nodiscard]] bool has_ended(int pidfd, std::chrono::milliseconds within);
/// Waits for the end of a child and collects it. True if it exited by itself.
bool reap(int pidfd);
/// The same by number: the wait status, waitpid(2). `options`: __WALL.
int wait_for(pid_t pid, int options = 0);

struct Child {
  pid_t pid = -1;
  UniqueFd process;  ///< a pidfd
};
/// Forks. The child calls `work` and exits with its answer, without destructors. Errors: host
/// "cannot-clone".
[[nodiscard]] Result<Child> fork(const std::function<int()>& work);

/// Closes every descriptor but the standard streams and those of `kept` (-1: none).
void keep_only(std::vector<int> kept);

}  // namespace sbx::process
