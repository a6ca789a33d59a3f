#pragma once

#include <algorithm>
#include <cstdint>

namespace sbx::supervise {

/// For work that a program asks for and that costs more here than there: a burst goes on at once, a
/// flood at a rate. Times are in microseconds, of any clock.
class Pace {
 public:
  /// One each `interval`; `burst` of them are saved where none were asked for.
  constexpr Pace(std::uint64_t interval, std::uint64_t burst)
      : interval_(interval), saved_(interval * burst) {}

  /// Takes one if there is one.
  bool take(std::uint64_t now) {
    next_ = std::max(next_, now - std::min(now, saved_));
    if (next_ > now) return false;
    next_ += interval_;
    return true;
  }
  /// When there will be one, after a take() that got none.
  [[nodiscard]] std::uint64_t next() const { return next_; }

 private:
  std::uint64_t interval_;
  std::uint64_t saved_;
  std::uint64_t next_ = 0;
};

}  // namespace sbx::supervise
