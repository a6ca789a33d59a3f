#include "mcp/wire.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/sys.hpp"

namespace sbx::mcp {
namespace {

constexpr std::size_t kAtOnce = std::size_t{64} << 10;
/// A pipe that epoll(7) calls writable takes so many without waiting, pipe(7), PIPE_BUF. The
/// descriptor may be another process's too, so that it is not made non-blocking.
constexpr std::size_t kWithoutWaiting = 4096;
constexpr std::size_t kForgets = std::size_t{1} << 20;

Result<UniqueFd> moved(int fd) {
  UniqueFd own(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (own.valid()) return own;
  return fail_errno(ErrorKind::host, "no-stream",
                    "cannot take over descriptor " + std::to_string(fd));
}

}  // namespace

Result<Wire> Wire::take() {
  UniqueFd in = SBX_TRY(moved(STDIN_FILENO));
  UniqueFd out = SBX_TRY(moved(STDOUT_FILENO));
  const UniqueFd null = SBX_TRY(sys::open_at(AT_FDCWD, "/dev/null", O_RDONLY));
  if (::dup2(null.get(), STDIN_FILENO) < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    return fail_errno(ErrorKind::host, "no-stream", "cannot replace the standard streams");
  return Wire(std::move(in), std::move(out));
}

Status Wire::attach(EventLoop& loop, Hooks hooks) {
  hooks_ = std::move(hooks);
  loop_ = &loop;
  SBX_TRY(loop.watch(out_.get(), 0, [this](std::uint32_t) { write(); }));
  return loop.watch(in_.get(), EPOLLIN, [this](std::uint32_t) { read(); });
}

void Wire::read() {
  std::array<char, kAtOnce> bytes{};
  const ssize_t got = ::read(in_.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  // What stands before the end without a line feed is not a message.
  if (got <= 0) return end_input();
  unread_.append(bytes.data(), static_cast<std::size_t>(got));
  take_lines();
}

void Wire::take_lines() {
  std::size_t begin = 0;
  for (std::size_t at = 0;
       !gone_ && (at = unread_.find('\n', std::max(begin, seen_))) != unread_.npos;
       begin = at + 1) {
    const std::size_t length = at - begin;
    seen_ = 0;
    if (std::exchange(skips_, false) || length > kLongestLine)
      hooks_.too_long();
    else
      hooks_.line(unread_.substr(begin, length));
  }
  unread_.erase(0, begin);
  skips_ = skips_ || unread_.size() > kLongestLine;
  if (skips_) std::string().swap(unread_);
  seen_ = unread_.size();
  if (unread_.empty() && unread_.capacity() > kForgets) std::string().swap(unread_);
}

void Wire::send(const std::string& text) {
  if (gone_) return;
  unwritten_ += text;
  unwritten_ += '\n';
  loop_->set_events(out_.get(), EPOLLOUT);
}

void Wire::write() {
  if (!write_some()) return end();
  if (unwritten_.empty()) loop_->set_events(out_.get(), 0);
}

bool Wire::write_some() {
  const char* const from = unwritten_.data() + written_;
  const std::size_t rest = unwritten_.size() - written_;
  ssize_t sent = ::send(out_.get(), from, std::min(rest, kAtOnce), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno == ENOTSOCK)
    sent = ::write(out_.get(), from, std::min(rest, kWithoutWaiting));
  if (sent < 0) return errno == EINTR || errno == EAGAIN;
  written_ += static_cast<std::size_t>(sent);
  if (written_ == unwritten_.size() || written_ > kForgets) {
    unwritten_.erase(0, written_);
    written_ = 0;
    if (unwritten_.empty()) unwritten_.shrink_to_fit();
  }
  return true;
}

void Wire::finish() {
  constexpr int kPatience = 500;  // ms: a client that ends may not read any more
  pollfd ready{.fd = out_.get(), .events = POLLOUT, .revents = 0};
  while (!unwritten_.empty() && ::poll(&ready, 1, kPatience) > 0 && write_some()) {
  }
}

void Wire::end_input() {
  loop_->forget(in_.get());
  hooks_.ended();
}

void Wire::end() {
  if (std::exchange(gone_, true)) return;
  loop_->forget(in_.get());
  loop_->forget(out_.get());
  hooks_.gone();
}

}  // namespace sbx::mcp
