#include "session/driver_channel.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <utility>

#include "base/held.hpp"
#include "base/json_read.hpp"
#include "base/sys.hpp"

namespace sbx::session {
namespace {

/// All values of a cell, whose escapes take up to six bytes each.
constexpr std::size_t kLargestMessage = std::size_t{64} << 20;
constexpr std::size_t kMostDigits = 8;
constexpr std::size_t kReadAtOnce = std::size_t{256} << 10;
/// Before the loop serves others: reads, and microseconds of CPU time, which one large message may
/// exceed.
constexpr int kReads = 8;
constexpr std::uint64_t kTurn = 10'000;
/// No budget counts what messages cost here. A thread that goes on sending them gets a part of the
/// time, in microseconds.
constexpr std::uint64_t kShare = 10;
constexpr std::uint64_t kAtOnce = 500'000;  ///< more than the largest answer takes

/// A message; discarded where it is none.
Json parsed(std::string_view text) {
  Json message = read_json(text);
  const auto event = message.find("event");
  const bool right = message.is_object() && event != message.end() && event->is_string();
  return right ? std::move(message) : Json(Json::value_t::discarded);
}

}  // namespace

Result<DriverChannel> DriverChannel::make(uid_t owner) {
  DriverChannel channel;
  sys::Pipe requests = SBX_TRY(sys::make_pipe());
  sys::Pipe replies = SBX_TRY(sys::make_pipe());
  constexpr auto kLeave = static_cast<uid_t>(-1);
  // Interpreters open their ends again through /proc/self/fd, which asks for the owner,
  // proc_pid_fd(5).
  for (const int fd : {requests.read.get(), replies.write.get()})
    if (owner != kLeave && !held::set_owner(fd, owner, static_cast<gid_t>(-1)))
      return fail_errno(ErrorKind::host, "no-stream", "cannot make a context's channel its own");
  for (const int fd : {requests.write.get(), replies.read.get()})
    (void)::fcntl(fd, F_SETFL, O_NONBLOCK);
  channel.requests_ = std::move(requests.write);
  channel.driver_requests_ = std::move(requests.read);
  channel.replies_ = std::move(replies.read);
  channel.driver_replies_ = std::move(replies.write);
  return channel;
}

void DriverChannel::close_driver_ends() {
  driver_requests_.reset();
  driver_replies_.reset();
}

Status DriverChannel::attach(EventLoop& loop, Hooks hooks) {
  loop_ = &loop;
  hooks_ = std::move(hooks);
  SBX_TRY(loop.watch(replies_.get(), EPOLLIN, [this](std::uint32_t) { read_and_rest(); }));
  return loop.watch(requests_.get(), 0, [this](std::uint32_t) { write(); });
}

void DriverChannel::detach() {
  if (loop_ == nullptr) return;
  loop_->cancel(std::exchange(resting_, EventLoop::kNoTimer));
  loop_->forget(replies_.get());
  loop_->forget(requests_.get());
  loop_ = nullptr;
}

void DriverChannel::take_rest() {
  hooks_.broken = [](const std::string&) {};
  for (int i = 0; i < kReads && loop_ != nullptr; ++i)
    if (!read_once()) break;
  detach();
}

void DriverChannel::break_off(const std::string& why) {
  if (loop_ == nullptr) return;
  detach();
  hooks_.broken(why);
}

void DriverChannel::send_text(std::string_view message) {
  if (loop_ == nullptr) return;
  unsent_.erase(0, std::exchange(sent_, 0));
  unsent_ += std::to_string(message.size()) + "\n";
  unsent_ += message;
  write();
}

void DriverChannel::write() {
  while (sent_ < unsent_.size()) {
    const ssize_t put = ::write(requests_.get(), unsent_.data() + sent_, unsent_.size() - sent_);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) return loop_->set_events(requests_.get(), EPOLLOUT);
    if (put < 0) return break_off("");  // EPIPE
    sent_ += static_cast<std::size_t>(put);
  }
  unsent_ = {};
  sent_ = 0;
  loop_->set_events(requests_.get(), 0);
}

void DriverChannel::read_and_rest() {
  const std::uint64_t began = sys::now_microseconds();
  const std::uint64_t spent = sys::spent_microseconds();
  read();
  if (loop_ == nullptr) return;
  owed_ -= std::min(owed_, (began - std::exchange(read_at_, sys::now_microseconds())) / kShare);
  owed_ += sys::spent_microseconds() - spent;
  if (owed_ <= kAtOnce) return;
  loop_->set_events(replies_.get(), 0);
  resting_ = loop_->after(std::chrono::microseconds((owed_ - kAtOnce) * kShare), [this] {
    resting_ = EventLoop::kNoTimer;
    loop_->set_events(replies_.get(), EPOLLIN);
  });
}

void DriverChannel::read() {
  const std::uint64_t began = sys::spent_microseconds();
  for (int i = 0; i < kReads && loop_ != nullptr; ++i)
    if (!read_once() || sys::spent_microseconds() - began > kTurn) return;
}

/// False where there is nothing to read.
bool DriverChannel::read_once() {
  hooks_.arrived();
  const std::size_t before = unread_.size();
  unread_.resize(before + kReadAtOnce);
  const ssize_t got = ::read(replies_.get(), unread_.data() + before, kReadAtOnce);
  const int error = errno;
  unread_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) return error == EINTR;  // else EAGAIN
  if (got == 0)
    break_off("");
  else if (!take_messages())
    break_off("the interpreter's answers are not messages");
  return got > 0;
}

/// False where the next bytes can't begin or be a message.
bool DriverChannel::take_messages() {
  std::size_t at = 0;
  while (at < unread_.size() && loop_ != nullptr) {
    const std::size_t end = unread_.find('\n', at);
    const std::size_t digits = std::min(end, unread_.size()) - at;
    if (digits > kMostDigits || (end != std::string::npos && digits == 0)) return false;
    std::size_t size = 0;
    const char* const from = unread_.data() + at;
    const auto [stopped, error] = std::from_chars(from, from + digits, size);
    if (stopped != from + digits || error != std::errc{} || size > kLargestMessage) return false;
    if (end == std::string::npos || unread_.size() - end - 1 < size) break;
    const Json message = parsed(std::string_view(unread_).substr(end + 1, size));
    if (message.is_discarded()) return false;
    at = end + 1 + size;
    hooks_.message(message);
  }
  unread_.erase(0, at);
  return true;
}

}  // namespace sbx::session
