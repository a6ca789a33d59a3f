#include "client/cell.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/sys.hpp"

namespace sbx::client {
namespace {

using namespace std::chrono_literals;

/// What was written before an event and is dropped on its way never comes.
constexpr auto kComesWithin = 1s;

}  // namespace

// ---- a stream ----

Result<UniqueFd> CellStream::open(Deliver deliver) {
  sys::Pipe pipe = SBX_TRY(sys::make_pipe());
  (void)::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  from_ = std::move(pipe.read);
  deliver_ = std::move(deliver);
  return std::move(pipe.write);
}

bool CellStream::read() {
  constexpr std::size_t kAtOnce = std::size_t{64} << 10;
  if (ended_ || !is_open()) return false;
  const std::size_t before = read_.size();
  ssize_t got = 0;
  read_.resize_and_overwrite(before + kAtOnce, [&](char* bytes, std::size_t) {
    got = ::read(from_.get(), bytes + before, kAtOnce);
    return before + static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  });
  ended_ = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  return got > 0;
}

void CellStream::deliver_until(std::uint64_t position) {
  if (!is_open() || position <= delivered_) return;
  deliver_first(std::min<std::uint64_t>(position - delivered_, read_.size()));
  delivered_ = position;
}

void CellStream::deliver() {
  deliver_first(read_.size());
}

void CellStream::deliver_first(std::size_t count) {
  if (count == 0) return;
  delivered_ += count;
  deliver_(std::string_view(read_).substr(0, count));
  read_.erase(0, count);
}

// ---- the cell ----

Result<UniqueFd> Cell::follow(CellStream& stream, CellStream::Deliver deliver) {
  return deliver ? stream.open(std::move(deliver)) : Result<UniqueFd>(UniqueFd());
}

Status Cell::attach(EventLoop& loop, Hooks hooks, std::span<const int> streams) {
  hooks_ = std::move(hooks);
  // Open until the session has them.
  const std::array<UniqueFd, 2> ends{SBX_TRY(follow(out_, hooks_.out)),
                                     SBX_TRY(follow(err_, hooks_.err))};
  const UniqueFd nowhere = SBX_TRY(sys::open_at(AT_FDCWD, "/dev/null", O_WRONLY));
  std::array<int, 2> fds{};
  for (std::size_t i = 0; i < fds.size(); ++i)
    fds[i] = ends[i].valid() ? ends[i].get() : i < streams.size() ? streams[i] : nowhere.get();
  connection_.never_wait();
  SBX_TRY(connection_.send(request_, fds));
  loop_ = &loop;
  const auto watched = [&]() -> Status {
    for (CellStream* const each : {&out_, &err_}) SBX_TRY(watch(*each));
    return loop.watch(connection_.fd(), EPOLLIN, [this](std::uint32_t) { advance(); });
  };
  Status done = watched();
  if (!done) leave();
  return done;
}

Status Cell::watch(CellStream& stream) {
  if (!stream.is_open()) return {};
  return loop_->watch(stream.fd(), EPOLLIN, [this, &stream](std::uint32_t) { read(stream); });
}

void Cell::read(CellStream& stream) {
  (void)stream.read();
  if (stream.has_ended()) loop_->forget(stream.fd());
  advance();
}

/// The session sends an event before it passes on what was written later. So whoever has read a
/// stream looks for events before it is delivered.
void Cell::advance() {
  for (;;) {
    if (!said_) {
      if (!connection_.has_more()) break;
      said_ = connection_.next_of_cell();
    }
    const auto* const event = *said_ ? std::get_if<protocol::CellEvent>(&**said_) : nullptr;
    if (event == nullptr) return end();
    if (!is_due(*event)) return;
    out_.deliver_until(event->after_out);
    err_.deliver_until(event->after_err);
    const Result<Said> told = std::move(*said_);
    said_.reset();
    if (hooks_.event) hooks_.event(std::get<protocol::CellEvent>(*told));
  }
  out_.deliver();
  err_.deliver();
}

/// Else it waits for what was written before it, for a while.
bool Cell::is_due(const protocol::CellEvent& event) {
  const bool is_there = out_.has_until(event.after_out) && err_.has_until(event.after_err);
  if (is_there || has_waited_) {
    if (timer_ != EventLoop::kNoTimer) loop_->set_events(connection_.fd(), EPOLLIN);
    loop_->cancel(std::exchange(timer_, EventLoop::kNoTimer));
    has_waited_ = false;
    return true;
  }
  if (timer_ != EventLoop::kNoTimer) return false;
  loop_->set_events(connection_.fd(), 0);
  timer_ = loop_->after(kComesWithin, [this] {
    has_waited_ = true;
    advance();
  });
  return false;
}

/// Everything is written by now. Whoever holds a stream open beyond that is not waited for.
void Cell::end() {
  constexpr int kMostReads = 64;
  for (CellStream* const each : {&out_, &err_}) {
    for (int i = 0; i < kMostReads && each->read(); ++i) each->deliver();
    each->deliver();
  }
  leave();
  const Result<Said> said = std::move(*said_);
  if (!said) return hooks_.ended(fail(said.error()));
  hooks_.ended(std::get<protocol::CellEnded>(*said));
}

void Cell::cancel(int signal) {
  if (loop_ != nullptr) (void)connection_.send(protocol::CancelMessage{.cancel = signal});
}

void Cell::leave() {
  if (loop_ == nullptr) return;
  loop_->cancel(std::exchange(timer_, EventLoop::kNoTimer));
  for (const CellStream* const each : {&out_, &err_})
    if (each->is_open()) loop_->forget(each->fd());
  loop_->forget(connection_.fd());
  loop_ = nullptr;
}

Cell::Ended Cell::run(std::span<const int> streams) {
  EventLoop loop = SBX_TRY(EventLoop::make());
  std::optional<Ended> result;
  SBX_TRY(attach(loop, {.ended = [&](Ended ended) { result.emplace(std::move(ended)); }}, streams));
  return run_until(loop, result);
}

}  // namespace sbx::client
