#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/cpu_time.hpp"
#include "supervise/meters/process_list.hpp"
#include "supervise/meters/tree_clock.hpp"

namespace sbx::supervise {

/// CPU time that a sandbox has used so far: the sum over its processes and their reaped children,
/// and, once begun, the kernel's task clock, which also knows children for whom nobody waited.
///
/// Both are lower bounds, so their maximum is the better answer and a budget is never said to be
/// spent before it is. The kernel rounds each time in /proc/PID/stat down to a tick (10 ms), and
/// utime + stime is the scheduler's own nanosecond count before that (cputime_adjust).
class CpuMeter {
 public:
  CpuMeter(pid_t pid1, ProcessList& processes)
      : pid1_(pid1), processes_(processes), clock_(processes) {}

  /// Begins the task clock. Otherwise: why not, empty if nothing was left to count.
  [[nodiscard]] bool begin_clock() { return clock_.open(pid1_); }
  [[nodiscard]] const std::string& why_no_clock() const { return clock_.why(); }
  [[nodiscard]] bool has_clock() const { return clock_.is_open(); }

  /// Total in microseconds while PID 1 is not reaped; never less than an earlier answer.
  [[nodiscard]] std::uint64_t total();
  /// The same afterwards, when nothing of /proc is the sandbox's any more.
  [[nodiscard]] std::uint64_t total_at_end();
  /// The sum over processes, split; while PID 1 is not reaped.
  [[nodiscard]] CpuTime by_process();

 private:
  pid_t pid1_;
  ProcessList& processes_;
  TreeClock clock_;
  std::uint64_t most_ = 0;
};

/// Raises a split to a total that is known better, in proportion.
void raise_to(CpuTime& time, std::uint64_t total);

}  // namespace sbx::supervise
