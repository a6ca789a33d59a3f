#include "supervise/meters/memory_meter.hpp"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "base/sys.hpp"
#include "supervise/meters/fileless_memory.hpp"
#include "supervise/meters/process_tree.hpp"

namespace sbx::supervise {
namespace {

struct Pages {
  std::uint64_t size = 0;       ///< of the address space
  std::uint64_t anonymous = 0;  ///< bytes
  std::uint64_t shared = 0;     ///< of mapped files and shared memory
};

/// Fields 2 and 3 of /proc/PID/statm, proc(5): resident, and the shared part of it.
Pages pages_in(std::string_view statm) {
  std::array<std::uint64_t, 3> fields{};
  for (std::uint64_t& field : fields) {
    const auto [end, error] = std::from_chars(statm.data(), statm.data() + statm.size(), field);
    if (error != std::errc{}) return {};
    statm.remove_prefix(static_cast<std::size_t>(end - statm.data()));
    statm.remove_prefix(std::min(statm.find_first_not_of(' '), statm.size()));
  }
  const std::uint64_t page = sys::page_size();
  return {.size = fields[0] * page,
          .anonymous = fields[1] > fields[2] ? (fields[1] - fields[2]) * page : 0,
          .shared = fields[2] * page};
}

/// Limit for each look and each walk. A process may have 65,000: reading those takes 0.15 s, in
/// which it could far exceed the rest of its budget.
constexpr std::size_t kMostMappings = 512;
constexpr std::size_t kMostMappingsExactly = 4096;

/// Bytes of empty page tables: the limit for all processes in a walk, and the threshold below which
/// one process isn't examined. A walk reads a MiB of them in 3.5 ms.
constexpr std::uint64_t kManyTables = 2U << 20;
constexpr std::uint64_t kFewTables = kManyTables / 8;

constexpr int kFaults = 10;   ///< "minflt": page faults without disk reads
constexpr int kStarted = 22;  ///< "starttime": differs if the number was reused

/// A number in /proc/PID/stat by its index in proc(5), for fields after the name.
std::uint64_t field_of(std::string_view stat, int wanted) {
  const auto name_end = stat.rfind(')');  // the name may contain anything
  if (name_end == std::string_view::npos) return 0;
  stat.remove_prefix(name_end + 1);
  for (int field = 3; field <= wanted; ++field)
    stat.remove_prefix(std::min(stat.find(' ') + 1, stat.size()));
  std::uint64_t value = 0;
  std::from_chars(stat.data(), stat.data() + stat.size(), value);
  return value;
}

bool same_memory(pid_t one, pid_t other) {
  return ::syscall(SYS_kcmp, one, other, KCMP_VM, 0, 0) == 0;
}

/// Possible error of a process's count: Linux 6.2 to 6.16 keep up to a batch on each CPU
/// (percpu_counter_batch) and don't include it.
std::uint64_t counter_error() {
  static const auto cpus =
      static_cast<std::uint64_t>(std::max(::sysconf(_SC_NPROCESSORS_CONF), 1L));
  const std::uint64_t page = sys::page_size();
  return std::max<std::uint64_t>(2 * cpus, 32) * cpus * page;
}

}  // namespace

TmpfsUse MemoryMeter::scratch_use() const {
  return scratch_ < 0 ? TmpfsUse{} : tmpfs_use(scratch_).value_or(TmpfsUse{});
}

bool MemoryMeter::borrows(const ProcessList::Process& process) const {
  return std::ranges::binary_search(borrowers_, process.number);
}

/// A child of vfork(2), or of clone(2) with CLONE_VM, shares its parent's memory, and its own
/// figures don't show that: until it execs, all of it would count twice.
void MemoryMeter::find_borrowers() {
  borrowers_.clear();
  if (!processes_.is_of_host()) return;  // kcmp(2) takes the caller's numbers
  std::vector<pid_t> found;
  for (ProcessList::Process& process : processes_.all()) {
    const auto parent = std::ranges::lower_bound(processes_.all(), process.parent, {},
                                                 &ProcessList::Process::number);
    if (parent == processes_.all().end() || parent->number != process.parent) continue;
    if (pages_in(processes_.statm(process)).size == pages_in(processes_.statm(*parent)).size &&
        process.holder != 0 && parent->holder != 0 && same_memory(process.holder, parent->holder))
      found.push_back(process.number);
  }
  borrowers_ = std::move(found);
}

MemoryMeter::Bounds MemoryMeter::bounds() {
  Bounds sum;
  for (ProcessList::Process& process : processes_.all()) {
    if (borrows(process)) continue;
    const Pages pages = pages_in(processes_.statm(process));
    sum.size += pages.size;
    sum.anonymous += pages.anonymous;
    sum.largest = std::max(sum.largest, pages.anonymous);
    sum.shared += pages.shared;
  }
  return sum;
}

/// The shared pages that belong to no file on a disk. Some may belong to a file on the private
/// tmpfs, which already counts: if both are large, also determines how many can't.
MemoryMeter::Shared MemoryMeter::shared_memory(std::uint64_t scratch, std::uint64_t budget) {
  const std::uint64_t matters = allowed_beyond(budget) / 4;
  const std::uint64_t of_each = matters / std::max<std::size_t>(processes_.all().size(), 1);
  std::size_t mappings = kMostMappings;
  Shared sum;
  std::array<char, 4096> room;
  for (const ProcessList::Process& process : processes_.all()) {
    if (borrows(process)) continue;
    const std::string directory = ProcessList::memory_directory(process);
    const std::uint64_t shared =
        kilobytes_of(read_small(processes_.proc(), directory + "/status", room), "RssShmem:") *
        1024;
    sum.memory += shared;
    if (scratch > matters && shared > of_each)
      sum.fileless +=
          std::min(shared, fileless_memory(processes_.proc(), directory + "/maps", mappings).size);
  }
  return sum;
}

/// Upper bounds for a process whose page tables cover far more than is resident: walking it would
/// give the other processes time to far exceed their budget. Empty for any other process. `tables`:
/// bytes of such tables that the walk may still read.
std::optional<MemoryMeter::Exact> MemoryMeter::bounds_of_slow(ProcessList::Process& process,
                                                              std::uint64_t& tables) {
  const Pages pages = pages_in(processes_.statm(process));
  const std::uint64_t needed = 2 * (pages.anonymous + pages.shared) / addresses_per_byte_of_table();
  if (pages.size / addresses_per_byte_of_table() < needed + kFewTables) return std::nullopt;
  std::array<char, 4096> room;
  const std::string_view status =
      read_small(processes_.proc(), ProcessList::memory_directory(process) + "/status", room);
  const std::uint64_t all = kilobytes_of(status, "VmPTE:") * 1024;
  const std::uint64_t empty = all - std::min(all, needed);
  if (empty > tables)
    return Exact{.anonymous = pages.anonymous + kilobytes_of(status, "VmSwap:") * 1024,
                 .rest = kilobytes_of(status, "RssShmem:") * 1024};
  tables -= empty;
  return std::nullopt;
}

MemoryMeter::Exact MemoryMeter::exact() {
  const std::uint64_t scratch = scratch_used();
  std::uint64_t anonymous = 0;
  std::uint64_t fileless = 0;
  std::uint64_t files = 0;  // and the shared memory that was not examined
  std::size_t mappings = kMostMappingsExactly;
  std::uint64_t tables = kManyTables;
  std::array<char, 4096> room;
  for (ProcessList::Process& process : processes_.all()) {
    if (borrows(process)) continue;
    if (const auto bounds = bounds_of_slow(process, tables)) {
      files += bounds->rest;
      anonymous += bounds->anonymous;
      continue;
    }
    const std::string directory = ProcessList::memory_directory(process);
    const std::string_view text = read_small(processes_.proc(), directory + "/smaps_rollup", room);
    const std::uint64_t shared = kilobytes_of(text, "Pss_Shmem:") * 1024;
    std::uint64_t without_file = 0;
    if (shared > 0 && shared_then_.fileless > 0)
      without_file = std::min(
          shared, fileless_memory(processes_.proc(), directory + "/smaps", mappings).resident);
    fileless += without_file;
    files += shared - without_file;
    anonymous += kilobytes_of(text, "Pss_Anon:") * 1024;
    anonymous += kilobytes_of(text, "SwapPss:") * 1024;
    // A process may be unreadable (PR_SET_DUMPABLE): then its upper bound counts.
    if (text.empty()) anonymous += pages_in(processes_.statm(process)).anonymous;
  }
  // A mapped file of the private tmpfs is in both figures: the larger of the two is certainly in
  // use.
  files = std::max(files, std::min(scratch, scratch_used()));
  return {.anonymous = anonymous, .rest = fileless + files + surely_aside()};
}

/// Mapped files of a disk don't count as the program's memory. Distinguishing them from shared
/// memory costs as much as all the rest, so it is done only when the shared pages have changed, or
/// when they could matter for the headroom.
std::uint64_t MemoryMeter::with_shared(const Bounds& now, std::uint64_t scratch,
                                       std::uint64_t budget) {
  constexpr std::uint64_t kChanged = 1U << 20;
  constexpr std::uint64_t kMatters = 4;
  const std::uint64_t most = now.anonymous + scratch + now.shared;
  const std::uint64_t change =
      now.shared > shared_then_.all ? now.shared - shared_then_.all : shared_then_.all - now.shared;
  if (change > kChanged || most > budget || now.shared > (budget - most) / kMatters) {
    shared_then_ = shared_memory(scratch, budget);
    shared_then_.all = now.shared;
  }
  return now.anonymous + std::max(scratch + shared_then_.fileless, shared_then_.memory);
}

std::uint64_t MemoryMeter::upper_bound(const Bounds& now, std::uint64_t scratch,
                                       std::uint64_t budget) {
  aside_ = beside_.look(host_memory(),
                        {.addresses = now.size,
                         .shared = scratch + now.shared,
                         .budget = budget,
                         .matters = allowed_beyond(budget) / 4},
                        borrowers_);
  return with_shared(now, scratch, budget) + surely_aside() + aside_.swapped;
}

/// The sockets' memory from the last listing may have been freed since and reused: so the sockets
/// are listed again before they end a run.
std::uint64_t MemoryMeter::look(std::uint64_t budget) {
  walk_cost_ = 0;
  const std::uint64_t room = budget - std::min(budget, used_);
  in_sockets_ = sockets_ == nullptr ? 0 : sockets_->look(room);
  socket_cost_ = sockets_ == nullptr ? 0 : sockets_->cost();
  used_ = estimate(budget);
  if (used_ > budget && in_sockets_ > 0) {
    in_sockets_ = sockets_->look_at_all(room);
    socket_cost_ += sockets_->cost();
    walk_.reset();
    used_ = estimate(budget);
  }
  peak_ = std::max(peak_, used_);
  return used_;
}

std::uint64_t MemoryMeter::estimate(std::uint64_t budget) {
  borrowers_.clear();
  Bounds now = bounds();
  const TmpfsUse use = scratch_use();
  const std::uint64_t scratch = use.content;
  entries_ = use.entries.value_or(0) * kEntryMemory;
  std::uint64_t upper = upper_bound(now, scratch, budget);
  if (upper > std::min(peak_, budget)) {
    find_borrowers();
    if (!borrowers_.empty()) upper = upper_bound(now = bounds(), scratch, budget);
  }
  // A walk takes time, and the processes keep running. So if several processes hold the memory, a
  // walk is done ahead of time, and additions to it decide later.
  const std::uint64_t near = budget / 8;
  const bool is_near = upper + near > budget;
  std::uint64_t used = upper;
  if (upper > budget)
    used = decide(now, upper - now.anonymous, budget);
  else if (!is_near)
    walk_.reset();
  else if (!walk_ && now.largest + scratch + entries_ + near < upper)
    (void)walk(upper - now.anonymous);
  in_doubt_ = upper > budget;
  return used;
}

std::uint64_t MemoryMeter::decide(const Bounds& now, std::uint64_t rest, std::uint64_t budget) {
  // Minimum time between two walks, in multiples of their cost: if nothing indicates growth, and if
  // something does.
  constexpr std::uint64_t kRarely = 20;
  constexpr std::uint64_t kOften = 8;
  const std::uint64_t least = now.largest + scratch_used() + surely_aside();
  if (least > budget + counter_error()) return least;
  // If usage is growing, the next look finds it far beyond the budget, which saves the walk.
  if (!in_doubt_ && now.anonymous + rest <= budget + counter_error()) return budget;
  if (!walk_) return walk(rest);
  const std::uint64_t surely = surely_since_walk(rest);
  if (surely > budget + 2 * counter_error()) return surely;
  const std::uint64_t age = sys::now_microseconds() - walk_->began;
  const std::uint64_t used = since_walk(rest);
  const bool is_same = used == walk_->used;  // not even a new huge page
  if (is_same || age < walk_->cost * (used <= budget ? kRarely : kOften))
    return std::min(used, budget);
  return walk(rest);
}

std::uint64_t MemoryMeter::walk(std::uint64_t rest) {
  const std::uint64_t before = sys::spent_microseconds();
  Walk now{.began = sys::now_microseconds(), .rest = rest, .scratch = scratch_used()};
  for (ProcessList::Process& process : processes_.all()) {
    if (borrows(process)) continue;
    const Memory memory = memory_of(process);
    now.largest = std::max(now.largest, memory.anonymous);
    now.processes.emplace(process.number, memory);
  }
  const Exact found = exact();
  now.used = found.anonymous + found.rest;
  now.surely_rest = found.rest + aside_.swapped;
  for (ProcessList::Process& process : processes_.all())
    if (const auto known = now.processes.find(process.number); known != now.processes.end())
      known->second.after = pages_in(processes_.statm(process)).anonymous;
  now.cost = walk_cost_ = sys::spent_microseconds() - before;
  walk_ = std::move(now);
  return walk_->used;
}

MemoryMeter::Memory MemoryMeter::memory_of(ProcessList::Process& process) {
  std::array<char, 1024> room;
  const std::string_view stat = read_small(processes_.proc(), process.directory + "/stat", room);
  return {.anonymous = pages_in(processes_.statm(process)).anonymous,
          .faults = field_of(stat, kFaults),
          .started = field_of(stat, kStarted)};
}

/// The last walk plus what may have been added since: each page that is new to a process, or newly
/// copied, was a fault of that process. A huge page is a single fault, so the walk is repeated now
/// and then.
std::uint64_t MemoryMeter::since_walk(std::uint64_t rest) {
  const std::uint64_t page = sys::page_size();
  const std::uint64_t scratch = scratch_used();
  std::uint64_t used =
      walk_->used + std::max(rest > walk_->rest ? rest - walk_->rest : 0,
                             scratch > walk_->scratch ? scratch - walk_->scratch : 0);
  for (ProcessList::Process& process : processes_.all()) {
    if (borrows(process)) continue;
    const Memory now = memory_of(process);
    const auto known = walk_->processes.find(process.number);
    const bool was_there = known != walk_->processes.end() && known->second.started == now.started;
    // A process forked since then started with the pages of an existing one.
    const Memory then = was_there ? known->second : Memory{.anonymous = walk_->largest};
    const std::uint64_t grown = now.anonymous > then.anonymous ? now.anonymous - then.anonymous : 0;
    const std::uint64_t faults = now.faults > then.faults ? now.faults - then.faults : 0;
    used += std::max(grown, faults * page);
  }
  return used;
}

/// The last walk plus what has certainly been added since. Growth of a process's anonymous memory
/// is new pages; shrinkage is subtracted, although another process may still have those pages. Of
/// the rest, memory that may be fileless may also belong to a file that already counts, so it is
/// left out.
std::uint64_t MemoryMeter::surely_since_walk(std::uint64_t rest) {
  std::uint64_t used = walk_->used;
  const std::uint64_t surely_rest = rest - std::min(rest, shared_then_.fileless);
  std::uint64_t gone =
      walk_->surely_rest > surely_rest ? walk_->surely_rest - surely_rest : std::uint64_t{0};
  auto process = processes_.all().begin();
  for (const auto& [number, then] : walk_->processes) {
    while (process != processes_.all().end() && process->number < number) ++process;
    const bool is_there = process != processes_.all().end() && process->number == number;
    const std::uint64_t now =
        is_there ? pages_in(processes_.statm(*process)).anonymous : std::uint64_t{0};
    if (now < then.after)
      gone += then.after - now;
    else if (now > then.after + counter_error() && memory_of(*process).started == then.started)
      used += now - then.after;
  }
  return used > gone ? used - gone : 0;
}

std::uint64_t allowed_beyond(std::uint64_t budget_bytes) {
  return std::max<std::uint64_t>(budget_bytes / 20, 16U << 20);
}

std::uint64_t next_look_microseconds(std::uint64_t bytes, bool rests) {
  constexpr std::uint64_t kGrowing = 8000;  // bytes per microsecond
  constexpr std::uint64_t kFromRest = 2500;
  return std::clamp<std::uint64_t>(bytes / (rests ? kFromRest : kGrowing), 1000, 50'000);
}

std::uint64_t often_enough_microseconds(std::uint64_t budget_bytes) {
  constexpr std::uint64_t kBytesPerMicrosecond = 1500;
  return std::min<std::uint64_t>(allowed_beyond(budget_bytes) / 2 / kBytesPerMicrosecond, 50'000);
}

}  // namespace sbx::supervise
