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
#include "supervise/meters/own_cpu.hpp"
#include "supervise/meters/process_tree.hpp"

namespace sbx::supervise {
namespace {

struct Pages {
  std::uint64_t size = 0;       ///< of the address space
  std::uint64_t anonymous = 0;  ///< bytes
  std::uint64_t shared = 0;     ///< of mapped files and shared memory
};

/// Fields 2 and 3 of /proc/PID/statm, proc(5): resident, and what of it is shared.
Pages pages_in(std::string_view statm) {
  std::array<std::uint64_t, 3> fields{};
  for (std::uint64_t& field : fields) {
    const auto [end, error] = std::from_chars(statm.data(), statm.data() + statm.size(), field);
    if (error != std::errc{}) return {};
    statm.remove_prefix(static_cast<std::size_t>(end - statm.data()));
    statm.remove_prefix(std::min(statm.find_first_not_of(' '), statm.size()));
  }
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return {.size = fields[0] * page,
          .anonymous = fields[1] > fields[2] ? (fields[1] - fields[2]) * page : 0,
          .shared = fields[2] * page};
}

/// Read at each look, and in each walk. A process may have 65,000: while they are read, in 0.15 s, it
/// could fill far more than it has left.
constexpr std::size_t kMostMappings = 512;
constexpr std::size_t kMostMappingsExactly = 4096;

/// Of page tables that stand for nothing: a walk reads a MiB of them in 3.5 ms, so that much of all
/// processes', and of one not worth asking about.
constexpr std::uint64_t kManyTables = 2U << 20;
constexpr std::uint64_t kFewTables = kManyTables / 8;

constexpr int kFaults = 10;   ///< "minflt": pages that it got without reading a disk
constexpr int kStarted = 22;  ///< "starttime": another process by the same number has another

/// A number in /proc/PID/stat, proc(5), counted as there, after the name.
std::uint64_t field_of(std::string_view stat, int wanted) {
  const auto name_end = stat.rfind(')');  // the name may hold anything
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

/// How far a process's count may be off: Linux 6.2 to 6.16 keep up to a batch on each CPU
/// (percpu_counter_batch) and don't ask for it.
std::uint64_t counter_error() {
  static const auto cpus =
      static_cast<std::uint64_t>(std::max(::sysconf(_SC_NPROCESSORS_CONF), 1L));
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return std::max<std::uint64_t>(2 * cpus, 32) * cpus * page;
}

}  // namespace

TmpfsUse MemoryMeter::scratch_use() const {
  return scratch_ < 0 ? TmpfsUse{} : tmpfs_use(scratch_).value_or(TmpfsUse{});
}

bool MemoryMeter::borrows(const ProcessList::Process& process) const {
  return std::ranges::binary_search(borrowers_, process.number);
}

/// A child of vfork(2), and of clone(2) with CLONE_VM, has its parent's memory, and no figure of its
/// own tells so: until it execs, all of it would count twice.
void MemoryMeter::find_borrowers() {
  borrowers_.clear();
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

/// Of the shared pages those that belong to no file of a disk. Some may be of a file of the private
/// tmpfs, which counts already: where both are large, how many can't be is asked.
MemoryMeter::Shared MemoryMeter::shared_memory(std::uint64_t scratch, std::uint64_t budget) {
  const std::uint64_t matters = allowed_beyond(budget) / 4;
  const std::uint64_t of_each = matters / std::max<std::size_t>(processes_.all().size(), 1);
  std::size_t mappings = kMostMappings;
  Shared sum;
  std::array<char, 4096> room;
  for (const ProcessList::Process& process : processes_.all()) {
    if (borrows(process)) continue;
    const std::string folder = ProcessList::memory_folder(process);
    const std::uint64_t shared =
        kilobytes_of(read_small(processes_.proc(), folder + "/status", room), "RssShmem:") * 1024;
    sum.memory += shared;
    if (scratch > matters && shared > of_each)
      sum.fileless +=
          std::min(shared, fileless_memory(processes_.proc(), folder + "/maps", mappings).size);
  }
  return sum;
}

/// The upper bounds of a process whose tables stand for far more than is resident: to walk it would leave
/// the others time to fill far more than they have left. Nothing for any other. `tables`: bytes of such
/// tables that a walk may still read.
std::optional<MemoryMeter::Exact> MemoryMeter::bounds_of_slow(ProcessList::Process& process,
                                                              std::uint64_t& tables) {
  const Pages pages = pages_in(processes_.statm(process));
  const std::uint64_t needed = 2 * (pages.anonymous + pages.shared) / kAddressesPerByteOfTable;
  if (pages.size / kAddressesPerByteOfTable < needed + kFewTables) return std::nullopt;
  std::array<char, 4096> room;
  const std::string_view status =
      read_small(processes_.proc(), ProcessList::memory_folder(process) + "/status", room);
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
  std::uint64_t files = 0;  // and what of the rest was not asked for
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
    const std::string folder = ProcessList::memory_folder(process);
    const std::string_view text = read_small(processes_.proc(), folder + "/smaps_rollup", room);
    const std::uint64_t shared = kilobytes_of(text, "Pss_Shmem:") * 1024;
    std::uint64_t without_file = 0;
    if (shared > 0 && shared_then_.fileless > 0)
      without_file = std::min(
          shared, fileless_memory(processes_.proc(), folder + "/smaps", mappings).resident);
    fileless += without_file;
    files += shared - without_file;
    anonymous += kilobytes_of(text, "Pss_Anon:") * 1024;
    anonymous += kilobytes_of(text, "SwapPss:") * 1024;
    // A process may have made itself unreadable (PR_SET_DUMPABLE): then its upper bound stands.
    if (text.empty()) anonymous += pages_in(processes_.statm(process)).anonymous;
  }
  // A mapped file of the private tmpfs is in both: the larger of the two is what is surely there.
  files = std::max(files, std::min(scratch, scratch_used()));
  return {.anonymous = anonymous, .rest = fileless + files + surely_aside()};
}

/// Mapped files of a disk are no memory of the program's. To tell them from shared memory costs as
/// much as all the rest: it is done when the shared pages have changed, and when what they could hide
/// matters beside the headroom.
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

/// What the last listing found in sockets may be gone by now, and be in use elsewhere: it ends no run before they are listed again.
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
  // A walk takes its time, and what runs beside it goes on: one is done ahead where several hold the
  // memory, and what is added to it later decides.
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
  // Of looking at all pages: so long between two of them, where nothing asks for it, and where it does.
  constexpr std::uint64_t kRarely = 20;
  constexpr std::uint64_t kOften = 8;
  const std::uint64_t least = now.largest + scratch_used() + surely_aside();
  if (least > budget + counter_error()) return least;
  // What grows is far beyond the budget at the next look, which saves the walk.
  if (!in_doubt_ && now.anonymous + rest <= budget + counter_error()) return budget;
  if (!walk_) return walk(rest);
  const std::uint64_t surely = surely_since_walk(rest);
  if (surely > budget + 2 * counter_error()) return surely;
  const std::uint64_t age = sys::now_microseconds() - walk_->began;
  const std::uint64_t used = since_walk(rest);
  const bool is_same = used == walk_->used;  // not even a huge page has come
  if (is_same || age < walk_->cost * (used <= budget ? kRarely : kOften))
    return std::min(used, budget);
  return walk(rest);
}

std::uint64_t MemoryMeter::walk(std::uint64_t rest) {
  const std::uint64_t before = spent_microseconds();
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
  now.cost = walk_cost_ = spent_microseconds() - before;
  walk_ = std::move(now);
  return walk_->used;
}

MemoryMeter::Memory MemoryMeter::memory_of(ProcessList::Process& process) {
  std::array<char, 1024> room;
  const std::string_view stat = read_small(processes_.proc(), process.folder + "/stat", room);
  return {.anonymous = pages_in(processes_.statm(process)).anonymous,
          .faults = field_of(stat, kFaults),
          .started = field_of(stat, kStarted)};
}

/// The last walk and what can have come since: pages that are new to a process, or that it has its own
/// copy of now, were faults of its own. Not all (a huge page is one fault): hence a walk now and then.
std::uint64_t MemoryMeter::since_walk(std::uint64_t rest) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t scratch = scratch_used();
  std::uint64_t used =
      walk_->used + std::max(rest > walk_->rest ? rest - walk_->rest : 0,
                             scratch > walk_->scratch ? scratch - walk_->scratch : 0);
  for (ProcessList::Process& process : processes_.all()) {
    if (borrows(process)) continue;
    const Memory now = memory_of(process);
    const auto known = walk_->processes.find(process.number);
    const bool was_there = known != walk_->processes.end() && known->second.started == now.started;
    // One that was forked since began with the pages of one that was there.
    const Memory then = was_there ? known->second : Memory{.anonymous = walk_->largest};
    const std::uint64_t grown = now.anonymous > then.anonymous ? now.anonymous - then.anonymous : 0;
    const std::uint64_t faults = now.faults > then.faults ? now.faults - then.faults : 0;
    used += std::max(grown, faults * page);
  }
  return used;
}

/// The last walk and what has certainly come since: a process's anonymous memory grows by pages that
/// are new; of what went, some may still be another's. Of the rest, what may be fileless may as well be
/// in a file that counts already.
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
  constexpr std::uint64_t kGrowing = 8000;  // bytes a microsecond
  constexpr std::uint64_t kFromRest = 2500;
  return std::clamp<std::uint64_t>(bytes / (rests ? kFromRest : kGrowing), 1000, 50'000);
}

std::uint64_t often_enough_microseconds(std::uint64_t budget_bytes) {
  constexpr std::uint64_t kBytesPerMicrosecond = 1500;
  return std::min<std::uint64_t>(allowed_beyond(budget_bytes) / 2 / kBytesPerMicrosecond, 50'000);
}

}  // namespace sbx::supervise
