#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include "base/event_loop.hpp"

namespace sbx::session {

/// Interrupts an interpreter until its code has stopped: a signal may come where nobody heeds it,
/// and code may swallow one.
class Interrupts {
 public:
  struct Signals {
    std::function<void()> interrupt;
    /// To an interpreter that has not heard that yet: system(3) ignores SIGINT while it waits, so a
    /// loop of it hears none.
    std::function<void()> unheard;
    /// To what the code waits for: it ends before the interpreter would.
    std::function<void()> end_children;
  };
  struct Times {
    std::chrono::milliseconds repeats{100};
    /// Code that has heard it may clean up, and may also go on.
    std::chrono::milliseconds repeats_to_hearer{500};
    std::chrono::milliseconds children_end{1000};
    std::chrono::milliseconds grace{2000};
  };
  Interrupts(EventLoop& loop, Signals signals) : Interrupts(loop, std::move(signals), Times()) {}
  Interrupts(EventLoop& loop, Signals signals, Times times)
      : loop_(loop), signals_(std::move(signals)), times_(times) {}
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts() = default;  // the loop may be gone

  enum class Children : bool { stay, end };
  /// `gave_up`: the grace is over.
  void begin(Children children, std::function<void()> gave_up);
  /// The code knows of it.
  void heard();
  /// The code has stopped; the next cell is not meant.
  void end();

 private:
  void interrupt();

  EventLoop& loop_;
  Signals signals_;
  Times times_;
  EventLoop::TimerId repeat_ = EventLoop::kNoTimer;
  EventLoop::TimerId children_ = EventLoop::kNoTimer;
  EventLoop::TimerId grace_ = EventLoop::kNoTimer;
  bool is_under_way_ = false;
  bool is_heard_ = false;
};

}  // namespace sbx::session
