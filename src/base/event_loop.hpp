#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "base/timers.hpp"
#include "base/unique_fd.hpp"

namespace sbx {

/// A single-threaded epoll loop: descriptors and one-shot timers. Callbacks may watch, pause and
/// forget anything, themselves included. Descriptors are borrowed: forget one before closing it.
/// What a turn costs does not depend on how many descriptors are watched or timers are set.
class EventLoop {
 public:
  using FdCallback = std::function<void(std::uint32_t events)>;
  using TimerCallback = Timers::Callback;
  using TimerId = Timers::Id;
  static constexpr TimerId kNoTimer = Timers::kNone;

  /// Errors: internal (no epoll instance).
  [[nodiscard]] static Result<EventLoop> make();

  EventLoop(EventLoop&&) noexcept = default;
  EventLoop& operator=(EventLoop&&) noexcept = default;

  /// Calls back, level-triggered unless `events` has EPOLLET, for `events` (EPOLLIN, EPOLLOUT,
  /// EPOLLRDHUP) and always for EPOLLHUP and EPOLLERR. What epoll can't watch (regular files,
  /// /dev/null: EPERM) counts as always ready. With `events` 0 the descriptor is known but nothing
  /// is reported: see set_events.
  [[nodiscard]] Status watch(int fd, std::uint32_t events, FdCallback callback);
  /// Changes what is reported. 0 takes the descriptor out of epoll altogether, because epoll
  /// reports a hang-up even if no event is requested.
  void set_events(int fd, std::uint32_t events);
  /// No-op for a descriptor that is not watched.
  void forget(int fd);

  /// `early`: so much before its time it may fire when the loop is awake anyway.
  TimerId after(std::chrono::microseconds delay, TimerCallback callback,
                std::chrono::microseconds early = {});
  /// Deadline as of sys::now_microseconds().
  TimerId at(std::uint64_t deadline_microseconds, TimerCallback callback);
  /// No-op for kNoTimer and for a timer that fired.
  void cancel(TimerId id);

  /// Waits for at least one event or timer and calls back. Errors: internal.
  [[nodiscard]] Status run_once();

 private:
  struct Watch {
    int fd = -1;
    std::uint32_t events = 0;
    bool in_epoll = false;
    bool always_ready = false;
    bool alive = true;
    FdCallback callback;
  };

  explicit EventLoop(UniqueFd epoll) : epoll_(std::move(epoll)) {}
  Watch* find(int fd);
  Status apply(Watch& watch, std::uint32_t events);
  void dispatch_always_ready();

  UniqueFd epoll_;
  std::vector<std::unique_ptr<Watch>> watches_;  ///< by descriptor; null where none is watched
  std::size_t always_ready_ = 0;                 ///< watches that epoll can't watch
  /// Forgotten while their callback or their batch of events was being worked on.
  std::vector<std::unique_ptr<Watch>> retired_;
  Timers timers_;
};

}  // namespace sbx
