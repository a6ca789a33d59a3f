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
/// Then others have their turn.
constexpr std::size_t kPerTurn = std::size_t{4} << 20;

/// splice(2) without waiting.
ssize_t splice_now(int from, int to, std::size_t size) {
  ssize_t moved = ::splice(from, nullptr, to, nullptr, size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  while (moved < 0 && errno == EINTR)
    moved = ::splice(from, nullptr, to, nullptr, size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  return moved;
}

}  // namespace

Result<sys::Pipe> Pipes::take() {
  if (spare_.empty()) return sys::make_pipe();
  sys::Pipe pipe = std::move(spare_.back());
  spare_.pop_back();
  return pipe;
}

void Pipes::give_back(sys::Pipe pipe) {
  if (pipe.read.valid() && spare_.size() < kMostSpare) spare_.push_back(std::move(pipe));
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
}

Status Relay::start() {
  // Edge-triggered: while a side is slow or idle its events need no switching on and off.
  constexpr std::uint32_t kEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  SBX_TRY(loop_.watch(near_.get(), kEvents, [this](std::uint32_t) { move(); }));
  SBX_TRY(loop_.watch(far_.get(), kEvents, [this](std::uint32_t) { move(); }));
  return {};  // both are reported at once, as every socket that can be written to
}

Relay::Bytes Relay::take_bytes() {
  return {.from_near = std::exchange(out_.passed, 0), .from_far = std::exchange(in_.passed, 0)};
}

void Relay::move() {
  const Moved out = move(out_);
  const Moved in = out == Moved::broken ? Moved::broken : move(in_);
  if (in == Moved::broken) return finish(true);
  if (out_.done && in_.done) return finish(false);
  const bool more = out == Moved::some || in == Moved::some;
  if (!more || again_ != EventLoop::kNoTimer) return;
  again_ = loop_.after(0us, [this] {
    again_ = EventLoop::kNoTimer;
    move();
  });
}

int Relay::drain(Way& way) {
  while (way.held > 0) {
    const ssize_t written = splice_now(way.pipe.read.get(), way.to, way.held);
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
    if (moved >= kPerTurn) {
      pipes_.give_back(std::exchange(way.pipe, {}));
      return Moved::some;
    }
    if (!way.pipe.read.valid()) {
      auto pipe = pipes_.take();
      if (!pipe) return Moved::broken;
      way.pipe = std::move(*pipe);
    }
    const ssize_t got = splice_now(way.from, way.pipe.write.get(), kPerSplice);
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
