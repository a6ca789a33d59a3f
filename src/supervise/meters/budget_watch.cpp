#include "supervise/meters/budget_watch.hpp"

#include <fcntl.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/sys.hpp"
#include "supervise/meters/process_tree.hpp"
#include "supervise/meters/reserve.hpp"

namespace sbx::supervise {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

/// Before that the command has used nothing measurable.
constexpr auto kFirstLook = 1ms;
constexpr auto kClockDelay = 50ms;  ///< so that short runs skip the cost of the task clock
constexpr std::uint64_t kShortestCpuStep = 1000;   // microseconds
constexpr std::uint64_t kLongestSumStep = 50'000;  // a sum includes reaped times only late
/// Divisors: measuring may take at most 1/20 of the time, and so on.
constexpr std::uint64_t kMeasuringShare = 20;
constexpr std::uint64_t kCountingShare = 400;
constexpr std::uint64_t kEntriesShare = 50;
constexpr std::uint64_t kNearShare = 100;
/// In microseconds: waking an idle CPU costs more than counting.
constexpr std::uint64_t kCountAtRest = 20'000;
/// started_since() can miss a start.
constexpr std::uint64_t kCountAnyway = 100'000;
/// Memory: 1/100 of the time, as long as that is often enough to catch a program that allocates 1.5
/// GB/s.
constexpr std::uint64_t kMemoryShare = 100;
/// Nothing grows for long near its budget, and several processes together take many times as much
/// as one.
constexpr std::uint64_t kGrowingShare = 5;
constexpr auto kLookAround = 50ms;
/// A full disk may soon have room again, and nothing counts refused writes.
constexpr auto kLookWhileFilling = 5ms;
constexpr auto kAfterSpent = 20ms;
constexpr int kKillLooks = 50;               ///< milliseconds between reaching a limit and the kill
constexpr std::uint64_t kForksPerStep = 16;  ///< forks of a fork bomb in a millisecond

std::uint64_t budget_of(Milliseconds time) {
  return static_cast<std::uint64_t>(microseconds(time).count());
}

/// 0 if it can't be read.
std::uint64_t outer_kills(const std::string& file) {
  std::array<char, 512> room;
  const std::string_view text = file.empty() ? "" : read_small(AT_FDCWD, file, room);
  constexpr std::string_view kName = "oom_kill ";
  const auto at = text.find(kName);
  std::uint64_t count = 0;
  if (at != std::string_view::npos)
    std::from_chars(text.data() + at + kName.size(), text.data() + text.size(), count);
  return count;
}

Error processes_hidden() {
  return {.kind = ErrorKind::host,
          .code = "processes-hidden",
          .message =
              "limits.memory, processes and cpu_time can't be enforced: /proc does not show "
              "the processes of the sandbox",
          .hint = "mount /proc without hidepid, or run sbx where it may make a cgroup"};
}

}  // namespace

BudgetWatch::BudgetWatch(EventLoop& loop, const Settings& settings, Sandbox sandbox, Hooks hooks)
    : loop_(loop),
      settings_(settings),
      sandbox_(sandbox),
      group_(sandbox.tree.handles().group),
      hooks_(std::move(hooks)),
      processes_(sandbox.tree.handles().pid, sandbox.tree.handles().processes),
      cpu_(sandbox.tree.handles().pid, processes_),
      sockets_(sandbox.sockets, sandbox.tree.handles().pid, sandbox.tree.handles().processes),
      memory_(processes_, settings.disk_in_directory ? -1 : sandbox.scratch, &sockets_),
      disk_(settings.disk_in_directory ? sandbox.scratch : -1),
      writes_(processes_, sandbox.tree.holder()) {
  seen_.memory_is_shared = sandbox_.tree.shares_budgets();
  // Not what is seen here: a fast program may have filled it by now.
  disk_full_ = Fullness(settings.exhausted_before.blocks);
  disk_files_full_ = Fullness(settings.exhausted_before.names);
  kills_answered_ = settings.memory_kills_before;
  if (!group_has_memory()) outer_kills_at_start_ = outer_kills(settings.outer_events);
}

Status BudgetWatch::start() {
  const Budgets& budgets = settings_.budgets;
  // A budget that nobody can see must not seem to be enforced.
  const bool polls = (!group_has_memory() && budgets.memory.count > 0) ||
                     (!group_has_processes() && budgets.processes > 0) ||
                     (!group_has_cpu_time() && budgets.cpu_time.count() > 0);
  if (polls && !processes_.sees_pid1()) return fail(processes_hidden());
  if (group_has_memory())
    SBX_TRY(watch_memory_alarm());
  else if (settings_.budgets.memory.count > 0 && !sandbox_.tree.shares_budgets())
    look_after(kFirstLook, &BudgetWatch::check_memory);
  if (!group_has_processes() && settings_.budgets.processes > 0)
    look_after(kFirstLook, &BudgetWatch::check_processes);
  if (settings_.disk_is_host_too) look_after(kFirstLook, &BudgetWatch::check_writes);
  if (grows()) look_after(kFirstLook, &BudgetWatch::check_growth);
  if (counts_entries()) look_after(kFirstLook, &BudgetWatch::check_entries);
  if (settings_.budgets.cpu_time.count() > 0) {
    look_after(kFirstLook, &BudgetWatch::check_cpu);
    if (!group_has_cpu_time() && settings_.trial)
      begin_cpu_clock();
    else if (!group_has_cpu_time())
      loop_.after(kClockDelay, [this] { begin_cpu_clock(); });
  }
  if (settings_.disk_in_directory) check_disk();
  look_after(kLookAround, &BudgetWatch::look_around);
  return {};
}

/// A run ends with the first budget that is spent. A session goes on: the next look comes when its
/// call had time to end.
void BudgetWatch::exceeded(Budget budget, Look look_again) {
  hooks_.spent(budget);
  if (!hooks_.ended()) look_after(kAfterSpent, look_again);
}

void BudgetWatch::look_after(microseconds step, Look look, microseconds early) {
  if (rests_) return waiting_.push_back({look, step, early});
  loop_.after(step, [this, look] { (this->*look)(); }, early);
}

void BudgetWatch::rest() {
  rests_ = true;
}

void BudgetWatch::resume() {
  rests_ = false;
  for (const Waiting& each : std::exchange(waiting_, {}))
    look_after(each.step, each.look, each.early);
}

// ---- memory ----

Status BudgetWatch::watch_memory_alarm() {
  const TreeCounters::Alarm alarm = group_->memory_alarm();
  if (alarm.fd < 0) return {};  // look_around() polls instead
  group_->quiet_alarm();
  return loop_.watch(alarm.fd, alarm.events, [this](std::uint32_t) { memory_alarm(); });
}

void BudgetWatch::memory_alarm() {
  group_->quiet_alarm();
  confirm_memory_kill(kKillLooks);
}

/// The kernel signals that the limit is reached before it has chosen a process to kill.
void BudgetWatch::confirm_memory_kill(int looks_left) {
  if (hooks_.ended()) return;
  if (memory_killed()) return answer_memory_kill();
  if (looks_left > 0 && group_->memory_limit_met() > 0)
    loop_.after(1ms, [this, looks_left] { confirm_memory_kill(looks_left - 1); });
}

bool BudgetWatch::memory_killed() const {
  return group_has_memory() && group_->memory_kills() > kills_answered_;
}

/// A run ends with it. In a session the kernel ended a process that was in no call's group yet; the
/// next is another.
void BudgetWatch::answer_memory_kill() {
  if (!sandbox_.tree.ends_with_budget()) kills_answered_ = group_->memory_kills();
  hooks_.spent(Budget::memory);
}

void BudgetWatch::check_memory() {
  if (hooks_.ended()) return;
  const Reserve reserve;
  const std::uint64_t before = sys::spent_microseconds();
  const std::uint64_t budget = settings_.budgets.memory.count;
  look_at_disk();
  processes_.add_new();
  const std::uint64_t used = [&] {
    const LookingAs program(sandbox_.tree.handles());
    return memory_.look(budget);
  }();
  if (used > budget) {
    seen_.memory_over = true;
    seen_.memory_in_sockets = memory_.in_sockets();
    note_largest();
    return exceeded(Budget::memory, &BudgetWatch::check_memory);
  }
  const std::uint64_t cost = sys::spent_microseconds() - before - memory_.walk_cost();
  const bool rests = rested_at_ && used < *rested_at_ + allowed_beyond(budget) / 16;
  rested_at_ = used;
  const std::uint64_t step =
      std::max({next_look_microseconds(budget - used + allowed_beyond(budget) / 2, rests),
                std::min(cost * kMemoryShare, often_enough_microseconds(budget)),
                cost * (rests ? kMeasuringShare : kGrowingShare)});
  look_after(microseconds(step), &BudgetWatch::check_memory, microseconds(step / 2));
}

/// Keeps the last one found while processes were alive.
void BudgetWatch::note_largest() {
  Largest found = largest_process(processes_);
  if (!found.name.empty()) seen_.largest = std::move(found);
}

/// Reports memory that may or may not belong to the sandbox; such memory decides nothing.
void BudgetWatch::note_doubts_of_memory() {
  if (group_has_memory() || settings_.budgets.memory.count == 0) return;
  const auto note = [this](std::string why, const char* instead) {
    degraded_.push_back({.promise = Promise::memory, .why = std::move(why), .instead = instead});
  };
  if (memory_.may_keep_unmapped())
    note(
        "the shared memory of the whole machine grew by more than the budget: pages that the "
        "command keeps without mapping them can't be told from other programs'",
        "only mapped pages count");
  if (!sockets_.unlisted().empty())
    note("this kernel doesn't list sockets of these kinds: " + sockets_.unlisted(),
         "what they hold does not count");
  if (sockets_.may_hide() > settings_.budgets.memory.count)
    note(
        "the kernel doesn't list sockets that were closed, reset or disconnected while they hold "
        "data: there were " +
            std::to_string(sockets_.hidden()),
        "what they hold does not count");
}

// ---- CPU time ----

void BudgetWatch::begin_cpu_clock() {
  if (hooks_.ended() || cpu_.begin_clock()) return;
  if (cpu_.why_no_clock().empty()) return;
  degraded_.push_back({.promise = Promise::cpu_time,
                       .why = "no task clock: " + cpu_.why_no_clock(),
                       .instead = "summed over live processes and those that were waited for"});
}

std::uint64_t BudgetWatch::cpu_microseconds() {
  if (!group_has_cpu_time()) return cpu_.total();
  return group_->cpu_time().value_or(CpuTime{}).total();
}

void BudgetWatch::check_cpu() {
  if (hooks_.ended()) return;
  const Reserve reserve;
  const std::uint64_t before = sys::spent_microseconds();
  const std::uint64_t used = cpu_microseconds() - cpu_from_;
  const std::uint64_t cost = sys::spent_microseconds() - before;
  const std::uint64_t budget = budget_of(settings_.budgets.cpu_time);
  if (used >= budget) return exceeded(Budget::cpu_time, &BudgetWatch::check_cpu);
  std::uint64_t step = (budget - used) / static_cast<std::uint64_t>(std::max(settings_.cpus, 1));
  if (!cpu_.has_clock() && !group_has_cpu_time()) step = std::min(step, kLongestSumStep);
  step = std::max({step, kShortestCpuStep, cost * kMeasuringShare});
  look_after(microseconds(step), &BudgetWatch::check_cpu, microseconds(step / 2));
}

// ---- processes: no counter reports refusals here, so being at the limit is the evidence ----

void BudgetWatch::note_tasks(std::uint64_t tasks) {
  if (group_has_processes() || settings_.budgets.processes == 0) return;
  seen_.processes_peak = std::max(seen_.processes_peak, tasks);
  seen_.processes_met = seen_.processes_met || tasks >= settings_.budgets.processes;
}

std::uint64_t BudgetWatch::count_tasks() {
  const Reserve reserve;
  counted_at_ = sys::now_microseconds();
  processes_.refresh();
  tasks_ = processes_.tasks();
  note_tasks(tasks_);
  return tasks_;
}

/// Skipped if the processes can't have reached the limit since the last count. A scan that races
/// with fork misses processes; PID 1 is waiting, so it rescans until the count stops growing.
void BudgetWatch::note_before_reaping() {
  if (group_has_processes() || settings_.budgets.processes == 0) return;
  const std::uint64_t passed = sys::now_microseconds() - counted_at_;
  if (tasks_ + kForksPerStep * (passed / 1000 + 1) < settings_.budgets.processes) return;
  std::uint64_t before = 0;
  while (!seen_.processes_met && count_tasks() > before) before = tasks_;
}

void BudgetWatch::check_processes() {
  if (hooks_.ended()) return;
  const std::uint64_t before = sys::spent_microseconds();
  const bool rests = !processes_.started_since(counted_) &&  // then the count is unchanged
                     sys::now_microseconds() < counted_at_ + kCountAnyway;
  const std::uint64_t tasks = rests ? tasks_ : count_tasks();
  const std::uint64_t cost = sys::spent_microseconds() - before;
  if (seen_.processes_met) return;
  const std::uint64_t headroom = settings_.budgets.processes - tasks;
  const std::uint64_t step = std::clamp<std::uint64_t>(headroom / kForksPerStep, 1, 50) * 1000;
  const bool near = tasks + tasks / 3 >= settings_.budgets.processes;
  const microseconds wait(
      std::max({step, cost * (near ? kNearShare : kCountingShare), rests ? kCountAtRest : 0}));
  look_after(wait, &BudgetWatch::check_processes, wait / 2);
}

// ---- writes to the host, in live grants: no counter covers all of them ----

void BudgetWatch::check_writes() {
  if (hooks_.ended()) return;
  const Reserve reserve;
  const std::uint64_t before = sys::spent_microseconds();
  std::uint64_t written = writes_.look();
  // A child reaped between its own reading and its parent's is counted in both.
  if (written > settings_.budgets.disk.count) written = std::min(written, writes_.look());
  note_written(written);
  seen_.unreadable = writes_.unreadable();
  if (seen_.written > settings_.budgets.disk.count || !seen_.unreadable.empty())
    return exceeded(Budget::disk, &BudgetWatch::check_writes);
  const std::uint64_t cost = sys::spent_microseconds() - before;
  const std::uint64_t step = writes_.next_look_microseconds(settings_.budgets.disk.count);
  look_after(microseconds(std::max(step, cost * kMeasuringShare)), &BudgetWatch::check_writes);
}

/// Separate, because it is cheap and memory fills faster than a disk.
void BudgetWatch::check_growth() {
  if (hooks_.ended()) return;
  const std::uint64_t before = sys::spent_microseconds();
  note_written(0);
  const std::uint64_t budget = settings_.budgets.disk.count;
  if (seen_.written > budget) return exceeded(Budget::disk, &BudgetWatch::check_growth);
  const std::uint64_t cost = sys::spent_microseconds() - before;
  const std::uint64_t step =
      GrowthMeter::next_look_microseconds(budget - seen_.written, settings_.cpus);
  look_after(microseconds(std::max(step, cost * kMeasuringShare)), &BudgetWatch::check_growth);
}

void BudgetWatch::note_written(std::uint64_t by_processes) {
  written_by_processes_ = std::max(written_by_processes_, by_processes);
  const std::uint64_t grown = grows() ? sandbox_.growth->look() : 0;
  if (written_by_processes_ + grown <= seen_.written) return;
  seen_.written = written_by_processes_ + grown;
  seen_.grown = grown;
}

void BudgetWatch::note_entries() {
  seen_.live_files = std::max(seen_.live_files, sandbox_.entries->made());
}

/// Like check_disk(), with a smaller share of the time: the walk through a large grant hardly ever
/// pauses.
void BudgetWatch::check_entries() {
  if (hooks_.ended()) return;
  const Reserve reserve;
  const std::uint64_t before = sys::spent_microseconds();
  EntryMeter& entries = *sandbox_.entries;
  const bool complete = entries.step(settings_.budgets.disk_files);
  // A file renamed during a walk may be counted twice.
  if (complete && entries.made() > settings_.budgets.disk_files)
    entries.walk(settings_.budgets.disk_files);
  const std::uint64_t cost = sys::spent_microseconds() - before;
  std::uint64_t step = std::max<std::uint64_t>(cost * kEntriesShare, 1000);
  if (complete) {
    note_entries();
    seen_.unlisted = entries.closed();
    if (seen_.live_files > settings_.budgets.disk_files || !seen_.unlisted.empty())
      return exceeded(Budget::disk, &BudgetWatch::check_entries);
    constexpr std::uint64_t kMicrosecondsPerName = 4;
    const std::uint64_t room =
        (settings_.budgets.disk_files - seen_.live_files) * kMicrosecondsPerName;
    const std::uint64_t longest = entries.is_doubtful() ? 50'000 : 500'000;
    step = std::max(step, std::clamp<std::uint64_t>(room, 10'000, longest));
  }
  look_after(microseconds(step), &BudgetWatch::check_entries, microseconds(step / 2));
}

// ---- periodic checks ----

void BudgetWatch::look_around() {
  if (hooks_.ended()) return;
  const Reserve reserve;
  look_at_disk();
  if (group_has_memory()) {
    if (memory_killed()) answer_memory_kill();
    if (hooks_.ended()) return;
    // After the kill it is too late to read the process's size.
    if (group_->memory_used() > settings_.budgets.memory.count / 2) {
      processes_.refresh();
      note_largest();
    }
  }
  const bool fills = std::exchange(disk_fills_, false) && !seen_.disk_met;
  const milliseconds step = fills ? kLookWhileFilling : kLookAround;
  look_after(step, &BudgetWatch::look_around, step / 2);
}

/// Does one piece of the walk at a time. Pauses between two walks for as long as the remaining room
/// can't be filled, and long enough to keep measuring within its share.
void BudgetWatch::check_disk() {
  if (hooks_.ended()) return;
  const std::uint64_t before = sys::spent_microseconds();
  const bool complete = disk_.step();
  const std::uint64_t cost = sys::spent_microseconds() - before;
  std::uint64_t step = std::max<std::uint64_t>(cost * kMeasuringShare, 1000);
  if (complete) {
    seen_.disk_peak = std::max(seen_.disk_peak, disk_.bytes());
    seen_.disk_filled = seen_.disk_peak;
    seen_.disk_met = disk_.bytes() > settings_.budgets.disk.count;
    seen_.disk_files_met = !seen_.disk_met && disk_.files() > settings_.budgets.disk_files;
    if (seen_.disk_met || seen_.disk_files_met)
      return exceeded(Budget::disk, &BudgetWatch::check_disk);
    constexpr std::uint64_t kBytesPerMicrosecond = 2000;
    const std::uint64_t room =
        (settings_.budgets.disk.count - disk_.bytes()) / kBytesPerMicrosecond;
    step = std::max(step, std::clamp<std::uint64_t>(room, 10'000, 500'000));
  }
  look_after(microseconds(step), &BudgetWatch::check_disk);
}

std::optional<struct statfs> BudgetWatch::disk_facts() const {
  struct statfs facts{};
  if (settings_.disk_in_directory) return {};  // check_disk() covers it
  if (sandbox_.scratch < 0 || ::fstatfs(sandbox_.scratch, &facts) != 0) return {};
  return facts;
}

void BudgetWatch::look_at_disk() {
  const auto facts = disk_facts();
  if (!facts) return;
  const std::uint64_t used = sys::used_bytes(*facts);
  disk_fills_ = disk_fills_ || (used > disk_used_ && facts->f_bfree < facts->f_blocks / 2);
  disk_used_ = used;
  seen_.disk_peak = std::max(seen_.disk_peak, used - std::min(used, settings_.disk_before));
  seen_.disk_filled = std::max(seen_.disk_filled, used);
  const Exhausted now = exhausted(*facts);
  disk_full_.look(now.blocks);
  disk_files_full_.look(now.names);
  seen_.disk_met = disk_full_.was_filled();
  seen_.disk_files_met = disk_files_full_.was_filled();
}

// ---- the end ----

void BudgetWatch::note_before_kill() {
  const Reserve reserve;
  if (!group_has_cpu_time()) used_ = cpu_.by_process();
  if (!group_has_processes() && settings_.budgets.processes > 0) (void)count_tasks();
}

void BudgetWatch::note_fullness() {
  look_at_disk();
  seen_.disk_met = seen_.disk_met || disk_full_.never_had_room();
  seen_.disk_files_met = seen_.disk_files_met || disk_files_full_.never_had_room();
}

void BudgetWatch::note_part() {
  note_fullness();
  note_processes();
}

void BudgetWatch::begin_part() {
  const auto facts = disk_facts();
  const Exhausted now = facts ? exhausted(*facts) : Exhausted{};
  disk_full_ = Fullness(now.blocks);
  disk_files_full_ = Fullness(now.names);
  seen_.disk_met = seen_.disk_files_met = false;
  if (group_has_processes()) return;  // their counter only grows
  seen_.processes_peak = 0;
  if (std::exchange(seen_.processes_met, false))
    look_after(kFirstLook, &BudgetWatch::check_processes);
}

void BudgetWatch::note_counters() {
  if (group_has_memory()) {
    seen_.memory_killed = group_->memory_kills() > settings_.memory_kills_before;
    seen_.memory_limit_met = seen_.memory_killed && group_->memory_limit_met() > 0;
    seen_.memory_peak = group_->memory_peak();
  } else {
    seen_.memory_peak = memory_.peak();
    seen_.outer_kill = outer_kills(settings_.outer_events) > outer_kills_at_start_;
  }
  note_processes();
}

void BudgetWatch::note_processes() {
  if (group_has_processes()) {
    const std::uint64_t peak = group_->processes_peak();
    seen_.processes_peak = peak - std::min(peak, settings_.own_tasks);
    seen_.processes_met = group_->process_refusals() > 0;
    seen_.processes_evidence = Evidence::kernel_counter;
  } else {
    seen_.processes_evidence = Evidence::sampled;
  }
}

void BudgetWatch::note_at_end(CpuTime of_pid1, std::uint64_t written_by_pid1) {
  // Counts the writes between the last look and the end: PID 1 at the latest has waited for each
  // process.
  if (settings_.disk_is_host_too) note_written(written_by_pid1);
  if (counts_entries()) {
    sandbox_.entries->walk(settings_.budgets.disk_files);
    note_entries();
  }
  note_fullness();
  note_counters();
  note_doubts_of_memory();
  used_.user_microseconds = std::max(used_.user_microseconds, of_pid1.user_microseconds);
  used_.system_microseconds = std::max(used_.system_microseconds, of_pid1.system_microseconds);
  if (group_has_cpu_time()) {
    if (const auto counted = group_->cpu_time(); counted && counted->total() > used_.total())
      used_ = *counted;
  } else {
    raise_to(used_, cpu_.total_at_end());
  }
}

}  // namespace sbx::supervise
