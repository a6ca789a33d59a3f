#include "network/relay.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "network/socket_address.hpp"

namespace sbx::network {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kPerSplice = std::size_t{1} << 20;
constexpr int kLargePipe = 1 << 20;  ///< as much as an ordinary user may have
/// Then others have their turn.
constexpr std::size_t kBytesPerTurn = std::size_t{4} << 20;

/// splice(2) without waiting.
ssize_t splice_now(int from, int to, std::size_t size) {
  ssize_t moved = ::splice(from, nullptr, to, nullptr, size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  while (moved < 0 && errno == EINTR)
    moved = ::splice(from, nullptr, to, nullptr, size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  return moved;
}

}  // namespace

Result<Pipes::Pipe> Pipes::take() {
  if (!spare_.empty()) {
    Pipe pipe = std::move(spare_.back());
    spare_.pop_back();
    return pipe;
  }
  Pipe made{.ends = SBX_TRY(sys::make_pipe())};
  made.large =
      large_ < kMostLarge && ::fcntl(made.ends.write.get(), F_SETPIPE_SZ, kLargePipe) >= kLargePipe;
  if (made.large) ++large_;
  return made;
}

void Pipes::give_back(Pipe pipe) {
  if (!pipe.ends.read.valid()) return;
  // Large ones are taken first.
  spare_.insert(pipe.large ? spare_.end() : spare_.begin(), std::move(pipe));
  if (spare_.size() <= kMostSpare) return;
  drop(std::move(spare_.front()));
  spare_.erase(spare_.begin());
}

void Pipes::drop(Pipe pipe) {
  if (pipe.large) --large_;
}

Relay::Relay(EventLoop& loop, Pipes& pipes, UniqueFd near, UniqueFd far, Ended ended)
    : loop_(loop),
      pipes_(pipes),
      near_(std::move(near)),
      far_(std::move(far)),
      ended_(std::move(ended)) {
  out_.from = in_.to = near_.get();
  out_.to = in_.from = far_.get();
}

Relay::~Relay() {
  loop_.cancel(again_);
  loop_.forget(near_.get());
  loop_.forget(far_.get());
  for (Way* const way : {&out_, &in_}) pipes_.drop(std::move(way->pipe));
}

Status Relay::start() {
  // Edge-triggered: while a side is slow or idle its events need no switching on and off.
  constexpr std::uint32_t kEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  SBX_TRY(loop_.watch(near_.get(), kEvents,
                      [this](std::uint32_t events) { ready(events, out_, in_); }));
  SBX_TRY(
      loop_.watch(far_.get(), kEvents, [this](std::uint32_t events) { ready(events, in_, out_); }));
  return {};  // both are reported at once, as every socket that can be written to
}

Relay::Bytes Relay::take_bytes() {
  return {.from_near = std::exchange(out_.passed, 0), .from_far = std::exchange(in_.passed, 0)};
}

void Relay::ready(std::uint32_t events, Way& from_it, Way& to_it) {
  // A side that has ended may still break: then the data of the other side has no receiver.
  if (from_it.done && (events & EPOLLERR) != 0) return finish(true);
  const Moved from = move(from_it);
  // What holds nothing waits for its source alone.
  go_on(from, from != Moved::broken && to_it.held > 0 ? move(to_it) : Moved::all);
}

void Relay::go_on(Moved one, Moved other) {
  if (one == Moved::broken || other == Moved::broken) return finish(true);
  if (out_.done && in_.done) return finish(false);
  const bool more = one == Moved::some || other == Moved::some;
  if (!more || again_ != EventLoop::kNoTimer) return;
  again_ = loop_.after(0us, [this] {
    again_ = EventLoop::kNoTimer;
    const Moved out = move(out_);
    go_on(out, out != Moved::broken ? move(in_) : out);
  });
}

int Relay::drain(Way& way) {
  while (way.held > 0) {
    const ssize_t written = splice_now(way.pipe.ends.read.get(), way.to, way.held);
    if (written < 0) return errno == EAGAIN ? 0 : -1;
    way.held -= static_cast<std::size_t>(written);
    way.passed += static_cast<std::uint64_t>(written);
  }
  return 1;
}

Relay::Moved Relay::move(Way& way) {
  if (way.done) return Moved::all;
  std::size_t moved = 0;
  for (;;) {
    if (way.held > 0) {
      const int drained = drain(way);
      if (drained < 0) return Moved::broken;
      if (drained == 0) return Moved::all;  // its next event goes on
    }
    if (way.at_end) break;
    if (moved >= kBytesPerTurn) {
      pipes_.give_back(std::exchange(way.pipe, {}));
      return Moved::some;
    }
    if (!way.pipe.ends.read.valid()) {
      auto pipe = pipes_.take();
      if (!pipe) return Moved::broken;
      way.pipe = std::move(*pipe);
    }
    const ssize_t got = splice_now(way.from, way.pipe.ends.write.get(), kPerSplice);
    if (got < 0 && errno == EAGAIN) {
      pipes_.give_back(std::exchange(way.pipe, {}));
      return Moved::all;
    }
    if (got < 0) return Moved::broken;
    way.at_end = got == 0;
    way.held = static_cast<std::size_t>(got);
    moved += way.held;
  }
  pipes_.give_back(std::exchange(way.pipe, {}));
  way.done = true;
  // A side that is gone altogether shows in its own way.
  (void)::shutdown(way.to, SHUT_WR);
  return Moved::all;
}

void Relay::finish(bool broken) {
  if (broken) {
    reset_on_close(near_.get());
    reset_on_close(far_.get());
  }
  const Ended ended = std::move(ended_);  // it may destroy this relay
  ended();
}

}  // namespace sbx::network
