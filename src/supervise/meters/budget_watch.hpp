#pragma once

#include <sys/vfs.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/event_loop.hpp"
#include "base/tree_counters.hpp"
#include "supervise/meters/cpu_meter.hpp"
#include "supervise/meters/disk_meter.hpp"
#include "supervise/meters/entry_meter.hpp"
#include "supervise/meters/growth_meter.hpp"
#include "supervise/meters/memory_meter.hpp"
#include "supervise/meters/process_list.hpp"
#include "supervise/meters/socket_meter.hpp"
#include "supervise/meters/write_meter.hpp"
#include "supervise/settings.hpp"
#include "supervise/tree.hpp"

namespace sbx::supervise {

/// Observations about the budgets of the whole tree.
struct BudgetsSeen {
  std::uint64_t memory_peak = 0;
  std::uint64_t processes_peak = 0;  ///< without Settings::own_tasks
  std::uint64_t disk_peak = 0;       ///< bytes on the private tmpfs, without its initial contents
  std::uint64_t disk_filled = 0;     ///< the same, including them
  std::uint64_t written = 0;         ///< bytes written to the host, if they count
  std::uint64_t grown = 0;           ///< of these, the growth of file systems in memory
  std::string unreadable;            ///< name of a process whose writes can't be read
  std::uint64_t live_files = 0;      ///< names that live grants have gained
  std::string unlisted;              ///< a directory there that can no longer be listed
  std::uint64_t memory_in_sockets = 0;  ///< polled: the sockets' part at the deciding look
  bool memory_killed = false;  ///< the kernel killed for lack of memory before any other decision
  bool outer_kill = false;     ///< polled: the group around sbx counted such a kill meanwhile
  bool memory_over = false;    ///< polled: a look found more than the budget
  bool memory_limit_met = false;  ///< the limit was the sandbox's own
  bool memory_is_shared = false;  ///< it is the limit of a session, of all its calls
  bool processes_met = false;
  bool disk_met = false;  ///< full; for a directory: the limit is exceeded
  bool disk_files_met = false;
  Evidence processes_evidence{};
  Largest largest;  ///< by memory, recorded near the limit
};

/// Whether a private disk was found full. A call of a session may begin on a full one and make
/// room, which doesn't count: it counts if it is filled again, or if it never had room.
class Fullness {
 public:
  explicit Fullness(bool at_start = false) : never_had_room_(at_start) {}
  void look(bool full) {
    never_had_room_ = never_had_room_ && full;
    was_filled_ = was_filled_ || (full && !never_had_room_);
  }
  [[nodiscard]] bool was_filled() const { return was_filled_; }
  [[nodiscard]] bool never_had_room() const { return never_had_room_; }

 private:
  bool never_had_room_;
  bool was_filled_ = false;
};

/// Watches the budgets of memory, CPU time, processes and disk of one run: by the counters of its
/// control group if it has one, otherwise by polling its processes. Reports once that a budget is
/// exceeded, and knows nothing of verdicts.
class BudgetWatch {
 public:
  struct Sandbox {
    const Tree& tree;
    int scratch = -1;
    GrowthMeter* growth = nullptr;
    EntryMeter* entries = nullptr;
    SocketDiagnosis sockets;
  };
  struct Hooks {
    std::function<bool()> ended;  ///< true when the run is already decided
    std::function<void(Budget)> spent;
  };

  BudgetWatch(EventLoop& loop, const Settings& settings, Sandbox sandbox, Hooks hooks);
  [[nodiscard]] Status start();
  /// For a session in which no call runs: each look comes once more, then none until resume().
  void rest();
  void resume();

  /// True if the control group has counted a kill for lack of memory.
  [[nodiscard]] bool memory_killed() const;
  /// Records the number of tasks at one moment, without PID 1.
  void note_tasks(std::uint64_t tasks);
  /// A process has ended; it still counts until it is reaped.
  void note_before_reaping();
  /// Records the figures that vanish with the tree: before it is killed, and after PID 1 has ended.
  void note_before_kill();
  void note_at_end(CpuTime of_pid1, std::uint64_t written_by_pid1);
  /// For what runs in parts, one after the other: records what the part that ends has met, as at
  /// the end of a run; from begin_part() on that is of the next one.
  void note_part();
  void begin_part();
  [[nodiscard]] std::uint64_t cpu_microseconds();
  /// From here on the whole budget of CPU time may be used once more.
  void renew_cpu_time() { cpu_from_ = cpu_microseconds(); }
  /// CPU time before that, in microseconds: none of the budget.
  [[nodiscard]] std::uint64_t cpu_from() const { return cpu_from_; }

  [[nodiscard]] const BudgetsSeen& seen() const { return seen_; }
  [[nodiscard]] CpuTime cpu_time() const { return used_; }
  [[nodiscard]] const char* cpu_means() const { return cpu_.has_clock() ? "task-clock" : "summed"; }
  [[nodiscard]] std::vector<Degraded> take_degraded() { return std::move(degraded_); }

 private:
  using Look = void (BudgetWatch::*)();
  struct Waiting {
    Look look = nullptr;
    std::chrono::microseconds step{};
    std::chrono::microseconds early{};
  };
  void exceeded(Budget budget, Look look_again);
  void look_after(std::chrono::microseconds step, Look look, std::chrono::microseconds early = {});
  Status watch_memory_alarm();
  void memory_alarm();
  void confirm_memory_kill(int looks_left);
  void answer_memory_kill();
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
  /// Describes the private tmpfs; empty if there is none.
  [[nodiscard]] std::optional<struct statfs> disk_facts() const;
  void look_at_disk();
  void check_disk();
  void note_fullness();
  void note_counters();
  void note_processes();

  [[nodiscard]] bool group_has_memory() const {
    return group_ != nullptr && group_->limits_memory();
  }
  [[nodiscard]] bool group_has_processes() const {
    // Calls share a group that has room for their inits, so that RLIMIT_NPROC refuses first, which
    // counts nothing.
    return group_ != nullptr && group_->limits_processes() && !sandbox_.tree.shares_budgets();
  }
  [[nodiscard]] bool grows() const {
    return sandbox_.growth != nullptr && sandbox_.growth->is_needed();
  }
  [[nodiscard]] bool counts_entries() const {
    return sandbox_.entries != nullptr && sandbox_.entries->is_needed() &&
           settings_.budgets.disk_files > 0;
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
  std::uint64_t cpu_from_ = 0;
  BudgetsSeen seen_;
  CpuTime used_;
  std::uint64_t outer_kills_at_start_ = 0;
  std::uint64_t written_by_processes_ = 0;
  Fullness disk_full_;
  Fullness disk_files_full_;
  std::uint64_t disk_used_ = 0;             ///< bytes on the private tmpfs at the last look
  bool disk_fills_ = false;                 ///< since look_around() last asked: it grew beyond half
  std::uint64_t kills_answered_ = 0;        ///< and those before; of a session, which goes on
  std::optional<std::uint64_t> rested_at_;  ///< bytes of memory in use at the last look
  std::uint64_t tasks_ = 0;                 ///< when they were last counted
  std::uint64_t counted_at_ = 0;
  std::string counted_;  ///< started_since() mark of the last count
  std::vector<Degraded> degraded_;
  bool rests_ = false;
  std::vector<Waiting> waiting_;  ///< looks that would have come while it rests
};

}  // namespace sbx::supervise
