#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace sbx {

/// One-shot timers. To add, cancel or fire one costs O(log n): a gateway has one for each of its
/// thousands of connections. Times are microseconds of one clock, the caller's.
class Timers {
 public:
  using Callback = std::function<void()>;
  using Id = std::uint64_t;
  static constexpr Id kNone = 0;

  /// Fires at `deadline`, or from `earliest` on if something else wakes the caller.
  Id add(std::uint64_t deadline, std::uint64_t earliest, Callback callback);
  /// No-op for kNone and for a timer that fired.
  void cancel(Id id);

  [[nodiscard]] std::size_t count() const { return timers_.size(); }
  /// When the caller must wake at the latest; nothing without timers.
  [[nodiscard]] std::optional<std::uint64_t> next_deadline() const;
  /// Calls back those that may fire at `now`, the earliest first. What a callback adds waits for
  /// the next call, so that a callback can't keep the caller busy.
  void fire(std::uint64_t now);

 private:
  struct Timer {
    std::uint64_t deadline = 0;
    std::uint64_t earliest = 0;
    Callback callback;
  };
  using Order = std::set<std::pair<std::uint64_t, Id>>;

  /// Takes the timer out; empty where there is none.
  Callback take(Id id);

  std::unordered_map<Id, Timer> timers_;
  Order by_deadline_;
  Order by_earliest_;
  Id last_ = kNone;
};

}  // namespace sbx
