#include "supervise/meters/tree_clock.hpp"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "supervise/meters/process_times.hpp"
#include "supervise/meters/process_tree.hpp"

namespace sbx::supervise {
namespace {

constexpr int kAttempts = 4;
constexpr std::size_t kMostCounters = 512;

UniqueFd open_counter(pid_t thread) {
  perf_event_attr what{};
  what.type = PERF_TYPE_SOFTWARE;
  what.config = PERF_COUNT_SW_TASK_CLOCK;
  what.size = sizeof what;
  what.inherit = 1;
  // The task clock still counts kernel time; perf_event_paranoid = 2 requires this flag.
  what.exclude_kernel = 1;
  return UniqueFd(static_cast<int>(
      ::syscall(SYS_perf_event_open, &what, thread, -1, -1, PERF_FLAG_FD_CLOEXEC)));
}

/// The scheduler's count for a process with all its threads, including those that have ended, in
/// nanoseconds.
std::uint64_t process_time(pid_t process) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

ProcessList::Process process_by(pid_t number) {
  ProcessList::Process process;
  process.number = number;
  process.directory = process_directory(number);
  return process;
}

std::uint64_t reaped_time(pid_t process) {
  return reaped_children_of(process).total() * 1000;
}

}  // namespace

TreeClock::Covered TreeClock::open_counters(const std::vector<pid_t>& threads) {
  for (const pid_t thread : threads) {
    if (counters_.size() >= kMostCounters) {
      why_ = "more than " + std::to_string(kMostCounters) + " threads ran when it was to begin";
      return Covered::refused;
    }
    UniqueFd counter = open_counter(thread);
    if (counter.valid()) {
      counters_.push_back(std::move(counter));
    } else if (errno != ESRCH) {  // the thread has not just ended
      why_ = std::string("perf_event_open: ") + ::strerrordesc_np(errno);
      return Covered::refused;
    }
  }
  return Covered::yes;
}

/// Lists children before and after opening the counters. A child that is only in the second list
/// may or may not have inherited a counter; counting it twice would end a run too early, so the
/// attempt is repeated. A child in the first list has certainly inherited none.
TreeClock::Covered TreeClock::cover(pid_t number, std::vector<pid_t>& children) {
  const std::size_t kept = counters_.size();
  ProcessList::Process process = process_by(number);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint64_t until_now = process_time(number) + reaped_time(number);
    const std::vector<pid_t> threads = processes_.threads_of(process);
    std::vector<pid_t> before = processes_.children_of(process);
    if (open_counters(threads) == Covered::refused) return Covered::refused;
    if (counters_.size() == kept) {
      before_ += until_now;
      return Covered::gone;
    }
    const std::vector<pid_t> threads_after = processes_.threads_of(process);
    if (std::ranges::includes(threads, threads_after) &&
        std::ranges::includes(before, processes_.children_of(process))) {
      before_ += until_now;
      children = std::move(before);
      return Covered::yes;
    }
    counters_.resize(kept);  // closing a counter closes the inherited ones too
  }
  return Covered::unsettled;
}

std::vector<pid_t> TreeClock::children_of_pid1() const {
  ProcessList::Process process = process_by(pid1_);
  return processes_.children_of(process);
}

/// Goes from parents to children: a reaped child's time moves only upwards, to a process that was
/// read before.
bool TreeClock::cover_tree() {
  counters_.clear();
  before_ = reaped_time(pid1_);
  std::vector<pid_t> tree = children_of_pid1();
  bool lost = false;
  for (std::size_t at = 0; at < tree.size(); ++at) {
    std::vector<pid_t> children;
    const Covered answer = cover(tree[at], children);
    if (answer == Covered::refused || answer == Covered::unsettled) return false;
    lost = lost || answer == Covered::gone;
    std::ranges::copy(children, std::back_inserter(tree));
  }
  if (!lost) return true;
  // A process that ended before it was covered may have left uncovered children to PID 1.
  return std::ranges::all_of(children_of_pid1(), [&](pid_t process) {
    return std::ranges::find(tree, process) != tree.end();
  });
}

bool TreeClock::open(pid_t pid1) {
  pid1_ = pid1;
  why_.clear();
  if (!processes_.is_of_host() || !tree_is_visible()) {
    why_ = "/proc does not show the processes of the sandbox";
    return false;
  }
  // Opening the first counter of all takes milliseconds: it happens here, not between two looks at
  // the tree.
  const UniqueFd first = open_counter(0);
  if (!first.valid()) {
    why_ = std::string("perf_event_open: ") + ::strerrordesc_np(errno);
    return false;
  }
  bool covered = false;
  for (int attempt = 0; attempt < kAttempts && !covered && why_.empty(); ++attempt)
    covered = cover_tree();
  if (covered) return is_open();
  counters_.clear();
  if (why_.empty()) why_ = "processes were started faster than they could be followed";
  return false;
}

std::uint64_t TreeClock::total(bool pid1_lives) {
  std::uint64_t sum = before_;
  for (const UniqueFd& counter : counters_) {
    std::uint64_t nanoseconds = 0;
    if (::read(counter.get(), &nanoseconds, sizeof nanoseconds) == sizeof nanoseconds)
      sum += nanoseconds;
  }
  if (pid1_lives) pid1_time_ = std::max(pid1_time_, process_time(pid1_));
  return (sum + pid1_time_) / 1000;
}

}  // namespace sbx::supervise
