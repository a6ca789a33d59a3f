#include "worker/process_setup.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

namespace sbx::worker {

void take_errors_for_signals() {
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)std::signal(SIGXFSZ, SIG_IGN);
}

bool fill_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    const int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", flags) != fd) return false;  // NOLINT(android-cloexec-open)
  }
  return true;
}

}  // namespace sbx::worker
