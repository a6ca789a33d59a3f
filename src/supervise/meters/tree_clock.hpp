#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "supervise/meters/process_list.hpp"

namespace sbx::supervise {

/// CPU time of a process tree by the kernel's task clock: counters that every later child inherits,
/// so that also children count for whom nobody waits. Opened on a tree that already runs, because
/// the first perf counter of a machine in a second costs 4 to 11 ms (a static branch is patched and
/// an RCU grace period passes), which no start should pay.
///
/// Never more than was used: what runs between looking and opening (microseconds), and what is less
/// than a tick of reaped children, is not counted.
class TreeClock {
 public:
  explicit TreeClock(ProcessList& processes) : processes_(processes) {}

  /// Opens counters on all threads below PID 1, which itself makes no processes any more.
  /// On failure nothing is open, and why() says why; empty: there was nothing left to count.
  [[nodiscard]] bool open(pid_t pid1);
  [[nodiscard]] bool is_open() const { return !counters_.empty(); }
  [[nodiscard]] const std::string& why() const { return why_; }

  /// Microseconds. `pid1_lives`: its number is still its own.
  [[nodiscard]] std::uint64_t total(bool pid1_lives);

 private:
  enum class Covered : std::uint8_t { yes, gone, unsettled, refused };

  bool cover_tree();
  Covered cover(pid_t number, std::vector<pid_t>& children);
  Covered open_counters(const std::vector<pid_t>& threads);

  [[nodiscard]] std::vector<pid_t> children_of_pid1() const;

  ProcessList& processes_;
  pid_t pid1_ = -1;
  std::uint64_t before_ = 0;     ///< nanoseconds until the counters began, without PID 1's own
  std::uint64_t pid1_time_ = 0;  ///< nanoseconds
  std::vector<UniqueFd> counters_;
  std::string why_;
};

}  // namespace sbx::supervise
