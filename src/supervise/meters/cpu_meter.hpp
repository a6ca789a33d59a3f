#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/cpu_time.hpp"
#include "supervise/meters/process_list.hpp"
#include "supervise/meters/tree_clock.hpp"

namespace sbx::supervise {

/// CPU time that a sandbox has used so far: the sum over its processes and their reaped children
/// and, once started, the kernel's task clock, which also counts children that nobody waits for.
///
/// Both are lower bounds, so their maximum is the better estimate, and a budget is never reported
/// as exceeded too early. The kernel rounds each time in /proc/PID/stat down to a tick (10 ms);
/// before that, utime + stime is the scheduler's nanosecond count (cputime_adjust).
class CpuMeter {
 public:
  CpuMeter(pid_t pid1, ProcessList& processes)
      : pid1_(pid1), processes_(processes), clock_(processes) {}

  /// Starts the task clock. On failure, why_no_clock() is the reason; it is empty if nothing was
  /// left to count.
  [[nodiscard]] bool begin_clock() { return clock_.open(pid1_); }
  [[nodiscard]] const std::string& why_no_clock() const { return clock_.why(); }
  [[nodiscard]] bool has_clock() const { return clock_.is_open(); }

  /// Total in microseconds, before PID 1 is reaped; never less than an earlier result.
  [[nodiscard]] std::uint64_t total();
  /// The same afterwards, when the sandbox no longer has anything in /proc.
  [[nodiscard]] std::uint64_t total_at_end();
  /// The sum over processes, split into user and system time; before PID 1 is reaped.
  [[nodiscard]] CpuTime by_process();

 private:
  pid_t pid1_;
  ProcessList& processes_;
  TreeClock clock_;
  std::uint64_t most_ = 0;
};

/// Scales user and system time so that they add up to `total`.
void raise_to(CpuTime& time, std::uint64_t total);

}  // namespace sbx::supervise
