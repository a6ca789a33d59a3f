#include "doctor/child.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/process.hpp"
#include "base/sys.hpp"

namespace sbx::doctor {
namespace {

/// Longer than any attempt takes on a machine that is merely busy.
constexpr int kPatienceMs = 60'000;

/// NUL terminates each text: errors and paths contain none.
std::string joined(const Texts& texts) {
  std::string bytes;
  for (const std::string& text : texts) bytes += text + '\0';
  return bytes;
}

Texts divided(std::string_view bytes) {
  Texts texts;
  while (!bytes.empty()) {
    const auto end = bytes.find('\0');
    if (end == std::string_view::npos) return {};  // the child died while writing
    texts.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
  }
  return texts;
}

std::string read_in_time(int fd) {
  std::string bytes;
  char block[4096];
  for (;;) {
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, kPatienceMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return {};
    const ssize_t got = ::read(fd, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return bytes;
    bytes.append(block, static_cast<std::size_t>(got));
  }
}

}  // namespace

Texts ask_child(const std::function<Texts()>& attempt) {
  auto pipe = sys::make_pipe();
  if (!pipe) return {};
  const pid_t pid = ::fork();
  if (pid < 0) return {};
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)sys::write_all(pipe->write.get(), joined(attempt()));  // no answer counts as an answer
    ::_exit(0);
  }
  pipe->write = UniqueFd();
  const std::string bytes = read_in_time(pipe->read.get());
  // It has answered or never will: its attempt may have left it stuck.
  ::kill(pid, SIGKILL);
  process::wait_for(pid);
  return divided(bytes);
}

}  // namespace sbx::doctor
