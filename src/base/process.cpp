#include "base/process.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>

#include "base/sys.hpp"

namespace sbx::process {
namespace {

/// The numbers of one line of what the kernel tells of a pidfd.
std::vector<pid_t> numbers_of(int pidfd, std::string_view key) {
  std::vector<pid_t> found;
  const auto text = sys::read_file("/proc/self/fdinfo/" + std::to_string(pidfd), 4096);
  std::size_t at = text ? text->find(key) : std::string::npos;
  if (at == std::string::npos) return found;
  at += key.size();
  const char* const end = text->data() + text->size();
  for (pid_t each = 0;;) {
    const auto [next, error] = std::from_chars(text->data() + at, end, each);
    if (error != std::errc()) return found;
    found.push_back(each);
    if (next == end || *next != '\t') return found;
    at = static_cast<std::size_t>(next - text->data()) + 1;
  }
}

}  // namespace

UniqueFd open(pid_t pid, unsigned flags) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, flags)));
}

UniqueFd open_self() {
  return open(::getpid());
}

UniqueFd of_peer(int socket) {
  constexpr int kPeerPidfd = 77;  // SO_PEERPIDFD
  int pidfd = -1;
  socklen_t size = sizeof pidfd;
  if (::getsockopt(socket, SOL_SOCKET, kPeerPidfd, &pidfd, &size) == 0) return UniqueFd(pidfd);
  ucred peer{};
  size = sizeof peer;
  if (errno != ENOPROTOOPT || ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      peer.pid <= 0)
    return UniqueFd();
  return open(peer.pid);
}

bool send_signal(int pidfd, int signal) {
  return ::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0;
}

void kill(int pidfd) {
  (void)send_signal(pidfd, SIGKILL);
}

UniqueFd take_descriptor(int pidfd, int fd) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd, fd, 0)));
}

pid_t number(int pidfd) {
  const auto found = numbers_of(pidfd, "\nPid:\t");
  return found.empty() ? -1 : found.front();
}

std::vector<pid_t> numbers(int pidfd) {
  return numbers_of(pidfd, "\nNSpid:\t");
}

bool has_ended(int pidfd, std::chrono::milliseconds within) {
  pollfd ended{.fd = pidfd, .events = POLLIN, .revents = 0};
  int ready = 0;
  while ((ready = ::poll(&ended, 1, static_cast<int>(within.count()))) < 0 && errno == EINTR) {
  }
  return ready > 0;
}

bool reap(int pidfd) {
  siginfo_t end{};
  while (::waitid(P_PIDFD, static_cast<id_t>(pidfd), &end, WEXITED) < 0 && errno == EINTR) {
  }
  return end.si_code == CLD_EXITED;
}

int wait_for(pid_t pid, int options) {
  int status = 0;
  while (::waitpid(pid, &status, options) < 0 && errno == EINTR) {
  }
  return status;
}

Result<Child> fork(const std::function<int()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(work());
  UniqueFd process = pid > 0 ? open(pid) : UniqueFd();
  if (process.valid()) return Child{pid, std::move(process)};
  const Error error{.kind = ErrorKind::host,
                    .code = "cannot-clone",
                    .message = "cannot start a process",
                    .errno_value = errno};
  if (pid > 0) {
    (void)::kill(pid, SIGKILL);
    wait_for(pid);
  }
  return fail(error);
}

void keep_only(std::vector<int> kept) {
  std::ranges::sort(kept);
  unsigned next = STDERR_FILENO + 1U;
  for (const int each : kept) {
    if (each <= STDERR_FILENO) continue;
    const auto own = static_cast<unsigned>(each);
    if (own > next) (void)::close_range(next, own - 1, 0);
    next = own + 1;
  }
  (void)::close_range(next, ~0U, 0);
}

}  // namespace sbx::process
