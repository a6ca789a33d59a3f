#pragma once

#include <sys/types.h>

#include <cstdint>

namespace sbx::supervise {

struct CpuTime {
  std::uint64_t user_microseconds = 0;
  std::uint64_t system_microseconds = 0;
  [[nodiscard]] std::uint64_t total() const { return user_microseconds + system_microseconds; }
};

/// CPU time that a sandbox has used so far. By the kernel's own counter where there is one; else
/// the sum over its processes and their reaped children, in clock ticks (10 ms).
class CpuMeter {
 public:
  /// Descriptors are borrowed and may be -1: a perf task-clock of the tree, a procfs of the
  /// sandbox.
  CpuMeter(pid_t pid1, int clock, int processes)
      : pid1_(pid1), clock_(clock), processes_(processes) {}

  [[nodiscard]] bool exact() const { return clock_ >= 0; }
  /// Total in microseconds; never less than an earlier answer.
  [[nodiscard]] std::uint64_t total();
  /// The sum over processes, split; while PID 1 lives.
  [[nodiscard]] CpuTime by_process() const;

 private:
  pid_t pid1_;
  int clock_;
  int processes_;
  std::uint64_t most_ = 0;
};

}  // namespace sbx::supervise
