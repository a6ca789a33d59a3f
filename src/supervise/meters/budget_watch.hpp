#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/event_loop.hpp"
#include "base/tree_counters.hpp"
#include "supervise/meters/cpu_meter.hpp"
#include "supervise/meters/disk_meter.hpp"
#include "supervise/meters/entry_meter.hpp"
#include "supervise/meters/growth_meter.hpp"
#include "supervise/meters/largest.hpp"
#include "supervise/meters/memory_meter.hpp"
#include "supervise/meters/process_list.hpp"
#include "supervise/meters/socket_meter.hpp"
#include "supervise/meters/write_meter.hpp"
#include "supervise/settings.hpp"

namespace sbx::supervise {

/// What was seen of the budgets that a whole tree shares.
struct BudgetsSeen {
  std::uint64_t memory_peak = 0;
  std::uint64_t processes_peak = 0;     ///< without PID 1
  std::uint64_t disk_peak = 0;          ///< bytes on the private tmpfs, without what it began with
  std::uint64_t disk_filled = 0;        ///< the same with it
  std::uint64_t written = 0;            ///< bytes to the host, where they count
  std::uint64_t grown = 0;              ///< of these, what file systems in memory grew by
  std::string unreadable;               ///< who can't be asked what it has written
  std::uint64_t live_files = 0;         ///< names that live grants have gained
  std::string unlisted;                 ///< a directory there that can't be listed any more
  std::uint64_t memory_in_sockets = 0;  ///< polled: of it, at the look that decided
  bool memory_killed =
      false;  ///< the kernel killed for want of memory before anything else was decided
  bool outer_kill = false;   ///< polled, and the group around sbx counted such a kill meanwhile
  bool memory_over = false;  ///< polled, and above the budget at a look
  bool memory_limit_met = false;  ///< it was the sandbox's own limit
  bool processes_met = false;
  bool disk_met = false;  ///< full; in a folder: beyond the limit
  bool disk_files_met = false;
  Evidence processes_evidence{};
  Largest largest;  ///< by memory, when it mattered
};

/// Watches the budgets of memory, CPU time, processes and disk of one run: by the counters of its
/// control group where it has one, else by looking at its processes. Knows nothing of verdicts: it
/// says that a budget is spent, once.
class BudgetWatch {
 public:
  struct Sandbox {
    pid_t pid = -1;  ///< PID 1
    int scratch = -1;
    int processes = -1;
    TreeCounters* group = nullptr;
    GrowthMeter* growth = nullptr;
    EntryMeter* entries = nullptr;
    SocketDiagnosis sockets;
  };
  struct Hooks {
    std::function<bool()> ended;  ///< nothing is left to decide
    std::function<void(Budget)> spent;
  };

  BudgetWatch(EventLoop& loop, const Settings& settings, Sandbox sandbox, Hooks hooks);
  [[nodiscard]] Status start();

  /// Whether the kernel has killed for want of memory, as far as the group tells.
  [[nodiscard]] bool memory_killed() const;
  /// So many tasks, without PID 1, were there at one moment.
  void note_tasks(std::uint64_t tasks);
  /// Something ended, and is counted as long as nobody has waited for it.
  void note_before_reaping();
  /// Takes the figures that are gone when the tree is: before it is killed, and when PID 1 ended.
  void note_before_kill();
  void note_at_end(CpuTime of_pid1, std::uint64_t written_by_pid1);
  [[nodiscard]] std::uint64_t cpu_microseconds();

  [[nodiscard]] const BudgetsSeen& seen() const { return seen_; }
  [[nodiscard]] CpuTime cpu_time() const { return used_; }
  [[nodiscard]] const char* cpu_means() const { return cpu_.has_clock() ? "task-clock" : "summed"; }
  [[nodiscard]] std::vector<Degraded> take_degraded() { return std::move(degraded_); }

 private:
  Status watch_memory_alarm();
  void memory_alarm();
  void confirm_memory_kill(int looks_left);
  void check_memory();
  void note_largest();
  void note_doubts_of_memory();
  void begin_cpu_clock();
  void check_cpu();
  void check_processes();
  std::uint64_t count_tasks();
  void check_writes();
  void check_growth();
  void check_entries();
  void note_entries();
  void note_written(std::uint64_t by_processes);
  void look_around();
  void look_at_disk();
  void check_disk();
  void note_counters();

  [[nodiscard]] bool group_has_memory() const {
    return group_ != nullptr && group_->limits_memory();
  }
  [[nodiscard]] bool group_has_processes() const {
    return group_ != nullptr && group_->limits_processes();
  }
  [[nodiscard]] bool grows() const {
    return sandbox_.growth != nullptr && sandbox_.growth->is_needed();
  }
  [[nodiscard]] bool counts_entries() const {
    return sandbox_.entries != nullptr && sandbox_.entries->is_needed() && settings_.disk_files > 0;
  }
  [[nodiscard]] bool group_has_cpu_time() const {
    return group_ != nullptr && group_->counts_cpu_time();
  }

  EventLoop& loop_;
  const Settings& settings_;
  const Sandbox sandbox_;
  TreeCounters* const group_;
  const Hooks hooks_;
  ProcessList processes_;
  CpuMeter cpu_;
  SocketMeter sockets_;
  MemoryMeter memory_;
  DiskMeter disk_;
  WriteMeter writes_;
  BudgetsSeen seen_;
  CpuTime used_;
  std::uint64_t disk_at_start_ = 0;
  std::uint64_t outer_kills_at_start_ = 0;
  std::uint64_t written_by_processes_ = 0;
  std::uint64_t disk_used_ = 0;  ///< bytes on the private tmpfs at the last look
  bool disk_fills_ = false;      ///< since look_around() has asked: more, and beyond half of it
  std::uint64_t rested_at_ = 0;  ///< bytes of memory in use at the last look
  std::uint64_t tasks_ = 0;      ///< when they were last counted
  std::uint64_t counted_at_ = 0;
  std::string counted_;  ///< mark of the last count in check_processes()
  std::vector<Degraded> degraded_;
};

}  // namespace sbx::supervise
