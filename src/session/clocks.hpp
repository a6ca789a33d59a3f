#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include <sbx/units.hpp>

#include "base/event_loop.hpp"

namespace sbx::session {

/// When a session ends by itself: at the end of its lifetime, or after a time in which nobody used
/// it. One timer each.
class Clocks {
 public:
  struct Hooks {
    std::function<bool()> is_used;  ///< now: something runs, or waits
    std::function<void()> idle;     ///< nobody has used it for so long
    std::function<void()> over;     ///< its lifetime is
  };
  Clocks(EventLoop& loop, Milliseconds idle, Hooks hooks)
      : loop_(loop), idle_(idle), hooks_(std::move(hooks)) {}

  void begin(Milliseconds lifetime);
  void note_use();
  /// It lives on for so long, from now.
  void extend(Milliseconds lifetime);
  /// What is left of its lifetime.
  [[nodiscard]] std::chrono::microseconds left() const;

 private:
  void watch_idle();
  void watch_lifetime();

  EventLoop& loop_;
  std::chrono::microseconds idle_;
  Hooks hooks_;
  std::uint64_t last_use_ = 0;  ///< microseconds, as ends_at_
  std::uint64_t ends_at_ = 0;
  EventLoop::TimerId lifetime_ = EventLoop::kNoTimer;
};

}  // namespace sbx::session
