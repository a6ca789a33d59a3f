#include "supervise/streams/input_relay.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/sys.hpp"

namespace sbx::supervise {
namespace {

constexpr int kInputRounds = 8;
/// A pipe of this size has one slot, of a page: its reader has emptied it when it takes more.
constexpr std::size_t kLoan = 4096;
/// A program that has read this much gets its input without the detour.
constexpr std::size_t kReadsOn = Block::kSize;

bool writable(int fd) {
  pollfd question{.fd = fd, .events = POLLOUT, .revents = 0};
  return ::poll(&question, 1, 0) == 1;
}

char end_of_file_character(int terminal) {
  termios settings{};
  return ::tcgetattr(terminal, &settings) == 0 ? static_cast<char>(settings.c_cc[VEOF]) : '\4';
}

}  // namespace

InputRelay::InputRelay(EventLoop& loop, UniqueFd destination, Options options)
    : loop_(loop), destination_(std::move(destination)), options_(std::move(options)) {
  struct stat facts{};
  if (::fstat(options_.source, &facts) != 0) return;
  may_splice_ = !options_.to_terminal && (S_ISFIFO(facts.st_mode) || S_ISREG(facts.st_mode));
  is_socket_ = S_ISSOCK(facts.st_mode);
  lends_ = options_.gauge.valid() && !S_ISREG(facts.st_mode);
}

InputRelay::~InputRelay() {
  finish();
  if (lends_)
    settle(static_cast<std::size_t>(untaken()));
  else
    give_back();
}

Status InputRelay::start() {
  if (lends_) {
    capacity_ = ::fcntl(destination_.get(), F_GETPIPE_SZ);
    null_ = SBX_TRY(sys::open_at(AT_FDCWD, "/dev/null", O_WRONLY));
    if (::fcntl(destination_.get(), F_SETPIPE_SZ, static_cast<int>(kLoan)) < 0) lends_ = false;
  }
  const int flags = ::fcntl(destination_.get(), F_GETFL);
  ::fcntl(destination_.get(), F_SETFL, flags | O_NONBLOCK);  // an open file description of our own
  const auto resume = [this](std::uint32_t) { pump(); };
  const auto resume_or_end = [this](std::uint32_t events) {
    if (options_.is_sent && (events & EPOLLERR) != 0) return finish();
    pump();
  };
  SBX_TRY(loop_.watch(destination_.get(), idle_events(), resume_or_end));
  return loop_.watch(options_.source, EPOLLIN, resume);
}

/// What to hear of the destination meanwhile: with any event asked for, that it has no reader.
std::uint32_t InputRelay::idle_events() const {
  return options_.is_sent ? std::uint32_t{EPOLLRDHUP} : 0U;
}

void InputRelay::pump() {
  for (int round = 0; destination_.valid() && round < kInputRounds; ++round) {
    const Step next = step();
    if (next == Step::end) return finish();
    if (next != Step::again) return wait_for(next);
  }
  if (destination_.valid()) wait_for(Step::wait_source);
}

void InputRelay::wait_for(Step what) {
  const bool for_source = what == Step::wait_source;
  loop_.set_events(options_.source, for_source ? std::uint32_t{EPOLLIN} : 0U);
  loop_.set_events(destination_.get(), for_source ? idle_events() : std::uint32_t{EPOLLOUT});
}

InputRelay::Step InputRelay::step() {
  if (block_at_ < block_end_) return flush();
  if (at_end_) return Step::end;
  if (lends_) return step_lend();
  return may_splice_ ? step_splice() : step_copy();
}

/// The program gets a copy of the next bytes. They leave the caller's pipe when the program has
/// taken them, so that input which it never asked for is there for whoever reads next ("seq 5 |
/// while read i; do sbx run …; done").
InputRelay::Step InputRelay::step_lend() {
  if (!writable(destination_.get())) return Step::wait_destination;
  // With something left in it, the pipe has room only if the program made it larger.
  if (untaken() > 0) return stop_lending();
  taken_ += settle(0);
  if (taken_ >= kReadsOn) return stop_lending();
  const ssize_t lent = is_socket_
                           ? copy_ahead()
                           : ::tee(options_.source, destination_.get(), kLoan, SPLICE_F_NONBLOCK);
  if (lent > 0) {
    lent_ = static_cast<std::size_t>(lent);
    return Step::again;
  }
  if (lent == 0) return Step::end;
  if (errno == EINTR) return Step::again;
  return errno == EAGAIN ? Step::wait_source : stop_lending();
}

/// Without taking it from the socket.
ssize_t InputRelay::copy_ahead() {
  const ssize_t got = ::recv(options_.source, block_.data(), kLoan, MSG_PEEK | MSG_DONTWAIT);
  if (got <= 0) return got;
  return ::write(destination_.get(), block_.data(), static_cast<std::size_t>(got));
}

/// Takes from the caller what the program has taken of the loan, and returns how much that is.
/// `left`: bytes in the program's pipe; it may have put some there itself.
std::size_t InputRelay::settle(std::size_t left) {
  const std::size_t taken = lent_ - std::min(left, lent_);
  lent_ = 0;
  for (std::size_t rest = taken; rest > 0;) {
    // Neither waits, where another reader was faster.
    const ssize_t got = is_socket_ ? ::recv(options_.source, block_.data(), rest, MSG_DONTWAIT)
                                   : ::splice(options_.source, nullptr, null_.get(), nullptr, rest,
                                              SPLICE_F_NONBLOCK);
    if (got <= 0) break;
    rest -= static_cast<std::size_t>(got);
  }
  return taken;
}

InputRelay::Step InputRelay::stop_lending() {
  settle(0);
  lends_ = false;
  options_.gauge.reset();
  ::fcntl(destination_.get(), F_SETPIPE_SZ, capacity_);
  return Step::again;
}

InputRelay::Step InputRelay::step_splice() {
  const ssize_t moved = ::splice(options_.source, nullptr, destination_.get(), nullptr,
                                 Block::kSize, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (moved > 0) return Step::again;
  if (moved == 0) return Step::end;
  switch (errno) {
    case EAGAIN:
      return writable(destination_.get()) ? Step::wait_source : Step::wait_destination;
    case EINTR:
      return Step::again;
    case EINVAL:
      may_splice_ = false;
      return Step::again;
    default:
      return Step::end;  // EPIPE: the sandbox closed its end; EBADF: the caller had closed fd 0
  }
}

InputRelay::Step InputRelay::step_copy() {
  // Without room it reads nothing: another reader of the same input may want it.
  if (!writable(destination_.get())) return Step::wait_destination;
  pollfd question{.fd = options_.source, .events = POLLIN, .revents = 0};
  if (::poll(&question, 1, 0) != 1) return Step::wait_source;
  const ssize_t got = is_socket_
                          ? ::recv(options_.source, block_.data(), Block::kSize, MSG_DONTWAIT)
                          : ::read(options_.source, block_.data(), Block::kSize);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Step::wait_source;
  block_at_ = 0;
  block_end_ = got > 0 ? static_cast<std::size_t>(got) : 0;
  if (got > 0) {
    if (options_.before_typed) options_.before_typed();
    return Step::again;
  }
  at_end_ = true;
  if (!options_.to_terminal) return Step::end;
  *block_.data() = end_of_file_character(destination_.get());
  block_end_ = 1;
  return Step::again;
}

InputRelay::Step InputRelay::flush() {
  const ssize_t written =
      ::write(destination_.get(), block_.data() + block_at_, block_end_ - block_at_);
  if (written < 0) return errno == EAGAIN ? Step::wait_destination : Step::end;
  block_at_ += static_cast<std::size_t>(written);
  return Step::again;
}

void InputRelay::finish() {
  if (!destination_.valid()) return;
  loop_.forget(options_.source);
  loop_.forget(destination_.get());
  destination_.reset();
  if (options_.is_sent) (void)::shutdown(options_.source, SHUT_RDWR);
}

/// Gives unread input back: a file's offset is shared with the caller, who continues reading where
/// the command stopped ("while read line; do sbx run …; done < list").
void InputRelay::give_back() {
  if (!options_.gauge.valid()) return;
  const auto unwritten = static_cast<off_t>(block_end_ - block_at_);
  const off_t back = static_cast<off_t>(untaken()) + unwritten;
  if (back > 0) ::lseek(options_.source, -back, SEEK_CUR);
}

/// Bytes that wait in the program's pipe.
int InputRelay::untaken() const {
  int bytes = 0;
  return ::ioctl(options_.gauge.get(), FIONREAD, &bytes) == 0 ? bytes : 0;
}

}  // namespace sbx::supervise
