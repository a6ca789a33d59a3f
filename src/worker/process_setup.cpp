#include "worker/process_setup.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "base/descriptor_reserve.hpp"

namespace sbx::worker {

void take_errors_for_signals() {
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)std::signal(SIGXFSZ, SIG_IGN);
}

void raise_descriptor_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  const rlim_t most = files.rlim_max - sys::reserved_descriptors(files.rlim_max);
  if (files.rlim_cur >= most) return;
  files.rlim_cur = most;
  (void)::setrlimit(RLIMIT_NOFILE,
                    &files);  // without it everything works but for a hostile program
}

bool fill_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    const int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", flags) != fd) return false;  // NOLINT(android-cloexec-open)
  }
  return true;
}

ArgumentArea argument_area(char** argv) {
  if (argv[0] == nullptr) return {};
  // The kernel lays argv and the environment out in one block, string after string (execve(2)); a
  // caller that moved an entry away ends it.
  char* end = argv[0];
  for (char** each = argv; *each != nullptr && *each == end; ++each) end += std::strlen(*each) + 1;
  for (char** each = environ; each != nullptr && *each != nullptr && *each == end; ++each)
    end += std::strlen(*each) + 1;
  return {.begin = argv[0], .size = static_cast<std::size_t>(end - argv[0])};
}

}  // namespace sbx::worker
