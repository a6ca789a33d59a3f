#include "supervise/streams/sink.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace sbx::supervise {
namespace {

constexpr std::size_t kTerminalBlock = 256;  // EPOLLOUT of a terminal guarantees little more

bool is_null(const struct stat& facts) {
  return facts.st_rdev == makedev(1, 3);
}
/// Opening /dev/ptmx again would create another terminal.
bool is_ptmx(const struct stat& facts) {
  return facts.st_rdev == makedev(5, 2);
}

bool for_writing(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_RDONLY;
}

}  // namespace

Sink::Sink(int fd) : fd_(fd) {
  struct stat facts{};
  if (fd < 0) return;
  if (!for_writing(fd) || ::fstat(fd, &facts) != 0) {
    kind_ = Kind::closed;
    return;
  }
  if (S_ISFIFO(facts.st_mode)) kind_ = Kind::pipe;
  if (S_ISSOCK(facts.st_mode)) kind_ = Kind::socket;
  if (S_ISREG(facts.st_mode) || S_ISBLK(facts.st_mode)) kind_ = Kind::file;
  if (!S_ISCHR(facts.st_mode) || is_null(facts)) return;
  kind_ = ::isatty(fd) == 1 ? Kind::terminal : Kind::device;
  if (!is_terminal() || is_ptmx(facts)) return;
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  // Fails after su(1), when the terminal belongs to another user: then writes small blocks.
  own_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

bool Sink::writable() const {
  pollfd question{.fd = fd(), .events = POLLOUT, .revents = 0};
  return ::poll(&question, 1, 0) == 1;  // also on POLLERR: the write then reports the error
}

Taken Sink::failure(int error) {
  switch (error) {
    case EAGAIN:
    case EINTR:
      return {.state = SinkState::full};
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
    case EBADF:
    case EIO:
      return {.state = SinkState::gone, .error = error};
    default:
      return {.state = SinkState::failed, .error = error};
  }
}

Sink::Spliced Sink::splice_from(int source, std::size_t limit) {
  // SPLICE_F_NONBLOCK applies to both pipes, whatever their flags are.
  const ssize_t moved =
      ::splice(source, nullptr, fd(), nullptr, limit, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (moved > 0) return {{.count = static_cast<std::size_t>(moved)}, false};
  if (moved == 0) return {{}, true};
  switch (errno) {
    case EAGAIN:
      return {{.state = writable() ? SinkState::ready : SinkState::full}, false};
    case EINVAL:
      may_splice_ = false;
      return {{}, false};
    default:
      return {failure(errno), false};
  }
}

Taken Sink::write(std::string_view bytes) {
  if (kind_ == Kind::nothing) return {.count = bytes.size()};
  if (kind_ == Kind::closed) return {.state = SinkState::failed, .error = EBADF};
  ssize_t written = 0;
  if (kind_ == Kind::socket) {
    written = ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } else {
    std::size_t block = bytes.size();
    if (kind_ == Kind::terminal && !own_.valid()) block = std::min(block, kTerminalBlock);
    if (kind_ == Kind::pipe || kind_ == Kind::device)
      block = std::min<std::size_t>(block, PIPE_BUF);
    if (kind_ != Kind::file && !writable()) return {.state = SinkState::full};
    written = ::write(fd(), bytes.data(), block);
  }
  if (written < 0) return failure(errno);
  return {.count = static_cast<std::size_t>(written)};
}

}  // namespace sbx::supervise
