#pragma once

#include <cstdint>
#include <optional>

#include "base/cpu_time.hpp"

namespace sbx {

/// What the kernel counts and enforces for a whole sandbox that has a control group of its own.
/// Implemented by src/cgroup, read by the supervisor; both see only this. Counters begin with the
/// group. A figure that can't be read is 0 or nothing: it then proves nothing.
class TreeCounters {
 public:
  virtual ~TreeCounters() = default;

  [[nodiscard]] virtual bool limits_memory() const = 0;
  [[nodiscard]] virtual bool limits_processes() const = 0;
  [[nodiscard]] virtual bool counts_cpu_time() const = 0;

  struct Alarm {
    int fd = -1;
    std::uint32_t events = 0;  ///< EPOLLIN or EPOLLPRI
  };
  /// A borrowed descriptor that becomes ready when the memory limit stops a process. The kill
  /// itself may be counted a moment later. fd -1: there is no alarm, look now and then.
  [[nodiscard]] virtual Alarm memory_alarm() const = 0;
  /// Makes the alarm quiet until it rings again.
  virtual void quiet_alarm() = 0;
  /// Processes that the kernel killed for lack of memory, whichever limit was reached.
  [[nodiscard]] virtual std::uint64_t memory_kills() const = 0;
  /// How often a process was killed because the group's own limit was reached; 0 after a kill: a
  /// limit further out, or the host itself, was the cause.
  [[nodiscard]] virtual std::uint64_t memory_limit_met() const = 0;
  [[nodiscard]] virtual std::uint64_t memory_used() const = 0;
  [[nodiscard]] virtual std::uint64_t memory_peak() const = 0;

  [[nodiscard]] virtual std::optional<CpuTime> cpu_time() const = 0;

  /// Forks and clones that the limit refused.
  [[nodiscard]] virtual std::uint64_t process_refusals() const = 0;
  /// The most tasks at once, PID 1 of the sandbox included.
  [[nodiscard]] virtual std::uint64_t processes_peak() const = 0;

  /// Stops or wakes every process at once; false where the group can't (cgroup v1).
  virtual bool freeze(bool frozen) = 0;
  [[nodiscard]] virtual bool is_frozen() const = 0;
  /// Kills every process at once; false where the group can't.
  virtual bool kill() = 0;
};

}  // namespace sbx
