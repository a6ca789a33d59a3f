#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "supervise/meters/process_list.hpp"

namespace sbx::supervise {

/// CPU time of a process tree from the kernel's task clock: later children inherit the counters, so
/// children that nobody waits for count too. It is started on a running tree, because the first
/// perf counter on a machine within a second costs 4 to 11 ms (patching a static branch takes an
/// RCU grace period), which no start should pay.
///
/// Never more than was used: what runs between listing and opening (microseconds) and what reaped
/// children used below a tick is not counted.
class TreeClock {
 public:
  explicit TreeClock(ProcessList& processes) : processes_(processes) {}

  /// Opens counters on all threads below PID 1, which itself no longer creates processes. On
  /// failure no counter is open, and why() is the reason; it is empty if nothing was left to count.
  [[nodiscard]] bool open(pid_t pid1);
  [[nodiscard]] bool is_open() const { return !counters_.empty(); }
  [[nodiscard]] const std::string& why() const { return why_; }

  /// In microseconds. `pid1_lives`: its number has not been reused.
  [[nodiscard]] std::uint64_t total(bool pid1_lives);

 private:
  enum class Covered : std::uint8_t { yes, gone, unsettled, refused };

  bool cover_tree();
  Covered cover(pid_t number, std::vector<pid_t>& children);
  Covered open_counters(const std::vector<pid_t>& threads);

  [[nodiscard]] std::vector<pid_t> children_of_pid1() const;

  ProcessList& processes_;
  pid_t pid1_ = -1;
  std::uint64_t before_ = 0;     ///< nanoseconds before the counters started, without PID 1's own
  std::uint64_t pid1_time_ = 0;  ///< nanoseconds
  std::vector<UniqueFd> counters_;
  std::string why_;
};

}  // namespace sbx::supervise
