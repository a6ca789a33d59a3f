#include "supervise/streams/input_relay.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>

namespace sbx::supervise {
namespace {

constexpr int kInputRounds = 8;

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
}

InputRelay::~InputRelay() {
  finish();
  give_back();
}

Status InputRelay::start() {
  const int flags = ::fcntl(destination_.get(), F_GETFL);
  ::fcntl(destination_.get(), F_SETFL, flags | O_NONBLOCK);  // an open file description of our own
  const auto resume = [this](std::uint32_t) { pump(); };
  SBX_TRY(loop_.watch(destination_.get(), 0, resume));
  return loop_.watch(options_.source, EPOLLIN, resume);
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
  loop_.set_events(destination_.get(), for_source ? 0U : std::uint32_t{EPOLLOUT});
}

InputRelay::Step InputRelay::step() {
  if (block_at_ < block_end_) return flush();
  if (at_end_) return Step::end;
  return may_splice_ ? step_splice() : step_copy();
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
  if (got > 0) return Step::again;
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
}

/// Gives unread input back: a file's offset is shared with the caller, who continues reading where
/// the command stopped ("while read line; do sbx run …; done < list"). A pipe can't take anything
/// back.
void InputRelay::give_back() {
  int untaken = 0;
  if (!options_.gauge.valid() || ::ioctl(options_.gauge.get(), FIONREAD, &untaken) != 0) return;
  const auto unwritten = static_cast<off_t>(block_end_ - block_at_);
  const off_t back = static_cast<off_t>(untaken) + unwritten;
  if (back > 0) ::lseek(options_.source, -back, SEEK_CUR);  // ESPIPE: not a file
}

}  // namespace sbx::supervise
