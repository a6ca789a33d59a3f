#include "supervise/meters/process_list.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/sys.hpp"
#include "supervise/meters/process_tree.hpp"

namespace sbx::supervise {
namespace {

constexpr std::size_t kMostKept = 128;
constexpr std::size_t kMostProcesses = 65536;
/// Divisor: if nothing is known to have started, re-listing may take 1/100 of the time.
constexpr std::uint64_t kListingShare = 100;

/// An eighth of the allowed descriptors: the rest is for streams and connections.
std::size_t most_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur / 8, kMostKept));
}

/// 0 if the name is not a number.
pid_t number_of(const char* name) {
  pid_t number = 0;
  const char* const end = name + std::strlen(name);
  return std::from_chars(name, end, number).ptr == end ? number : 0;
}

struct Entry {
  pid_t number = 0;
  std::int64_t place = 0;
};

/// The numbers in an open directory, from an offset on.
std::vector<Entry> entries_from(int directory, std::int64_t place) {
  std::vector<Entry> found;
  alignas(dirent64) std::array<char, 4096> buffer;
  if (::lseek(directory, place, SEEK_SET) != place) return found;
  for (;;) {
    const long got = ::syscall(SYS_getdents64, directory, buffer.data(), buffer.size());
    if (got <= 0) return found;
    for (long at = 0; at < got;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
      at += entry->d_reclen;
      if (const pid_t number = number_of(entry->d_name); number > 0)
        found.push_back({.number = number, .place = place});
      place = entry->d_off;
    }
  }
}

void add_numbers(std::string_view text, std::vector<pid_t>& found) {
  while (!text.empty()) {
    pid_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return;
    found.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  }
}

/// Removes the entry for `number` from `before`, which is sorted by number.
template <typename Item>
Item take(std::vector<Item>& before, pid_t number) {
  const auto known = std::ranges::lower_bound(before, number, {}, &Item::number);
  if (known != before.end() && known->number == number) return std::move(*known);
  Item item;
  item.number = number;
  return item;
}

/// The second field of /proc/PID/statm, in pages: proc(5).
std::uint64_t resident_bytes(std::string_view statm) {
  const std::uint64_t page = sys::page_size();
  statm.remove_prefix(std::min(statm.find(' '), statm.size()));
  statm.remove_prefix(std::min(statm.find_first_not_of(' '), statm.size()));
  std::uint64_t pages = 0;
  std::from_chars(statm.data(), statm.data() + statm.size(), pages);
  return pages * page;
}

}  // namespace

ProcessList::ProcessList(pid_t pid1, int processes, bool lists_tree, std::string directory)
    : processes_(processes), lists_tree_(lists_tree), most_kept_(most_descriptors()) {
  pid1_.number = pid1;
  pid1_.directory = std::move(directory);
}

ProcessList::ProcessList(pid_t pid1, int processes)
    : ProcessList(pid1, processes, processes < 0, processes < 0 ? process_directory(pid1) : "1") {}

ProcessList ProcessList::below(pid_t top, int processes) {
  return {top, processes, true, processes < 0 ? process_directory(top) : std::to_string(top)};
}

std::string ProcessList::directory_of(pid_t number) const {
  return is_of_host() ? process_directory(number) : std::to_string(number);
}

int ProcessList::proc() const {
  return proc_of(processes_);
}

bool ProcessList::sees_pid1() const {
  if (!is_of_host() || pid1_.number <= 0) return true;  // 0: it has been reaped already
  const std::string own =
      pid1_.directory + "/task/" + pid1_.directory.substr(pid1_.directory.rfind('/') + 1);
  if (::faccessat(proc(), (own + "/children").c_str(), R_OK, 0) == 0) return true;
  return ::kill(pid1_.number, 0) != 0 && errno == ESRCH;  // it has ended
}

void ProcessList::refresh() {
  if (lists_tree_)
    list_tree();
  else
    list_procfs();
  count_kept();
}

/// The end of /proc/loadavg: the number of tasks, and the number last given to a task in this PID
/// namespace or below it. The latter advances with every task (idr_alloc_cyclic); returning to the
/// same value takes tens of thousands of starts between two looks. Empty if unknown.
std::string_view ProcessList::last_started() {
  constexpr auto kProc = 0x9fa0;  // PROC_SUPER_MAGIC: a container may have another file there
  if (!load_.valid()) {
    load_ = UniqueFd(::open("/proc/loadavg", O_RDONLY | O_CLOEXEC));
    struct statfs facts{};
    if (!load_.valid() || ::fstatfs(load_.get(), &facts) != 0 || facts.f_type != kProc) return {};
  }
  const ssize_t got = ::pread(load_.get(), room_.data(), room_.size(), 0);
  const std::string_view text(room_.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  const auto tasks = text.rfind('/');
  return tasks == std::string_view::npos ? std::string_view() : text.substr(tasks + 1);
}

bool ProcessList::started_since(std::string& mark) {
  const std::string_view last = last_started();
  if (!last.empty() && last == mark) return false;
  mark = last;
  return true;
}

/// Lists anyway now and then: a task gets its number before it can be listed, and its parent can
/// prolong the time between, because the kernel writes CLONE_PIDFD's descriptor to the parent's
/// memory there (copy_process). And a process that is reparented while the lists are read may be
/// missing from all of them.
void ProcessList::add_new() {
  if (!started_since(listed_) &&
      sys::now_microseconds() < listed_at_ + listing_cost_ * kListingShare)
    return;
  const std::uint64_t before = sys::spent_microseconds();
  refresh();
  listed_at_ = sys::now_microseconds();
  listing_cost_ = sys::spent_microseconds() - before;
}

void ProcessList::count_kept() {
  const auto of = [](const Process& process) {
    return (process.statm.valid() ? 1U : 0U) + (process.task.valid() ? 1U : 0U) +
           (process.children.valid() ? 1U : 0U);
  };
  kept_ = of(pid1_);
  for (const Process& process : all_) kept_ += of(process);
}

/// Some 60 entries that are not processes come first. So this starts reading at PID 1, which
/// outlives all others, or at the beginning if PID 1 isn't found there.
void ProcessList::list_procfs() {
  std::vector<Entry> entries = entries_from(processes_, first_);
  if (first_ != 0 && (entries.empty() || entries.front().number != 1))
    entries = entries_from(processes_, 0);
  std::ranges::sort(entries, {}, &Entry::number);
  std::vector<Process> now;
  for (const Entry& entry : entries) {
    if (entry.number == 1) {
      first_ = entry.place;
      continue;
    }
    now.push_back(take(all_, entry.number));
    if (now.back().directory.empty()) now.back().directory = std::to_string(entry.number);
  }
  all_ = std::move(now);
}

// ---- by the lists of children: needs no procfs of the sandbox, which would slow down each start
// ----

void ProcessList::list_tree() {
  std::vector<Process> now;
  std::vector<Child> found;
  for (const pid_t child : children_of_pid1())
    found.push_back({.number = child, .parent = pid1_.number});
  for (std::size_t at = 0; at < found.size() && at < kMostProcesses;) {
    for (; at < found.size() && at < kMostProcesses; ++at) {
      now.push_back(take(all_, found[at].number));
      Process& process = now.back();
      if (process.directory.empty()) process.directory = directory_of(process.number);
      process.parent = found[at].parent;
      add_children(process, found);
    }
    add_adopted(found);
  }
  std::ranges::sort(now, {}, &Process::number);
  // A process that was reparented meanwhile may be in two lists.
  const auto twice = std::ranges::unique(now, {}, &Process::number);
  now.erase(twice.begin(), twice.end());
  all_ = std::move(now);
}

void ProcessList::add_children(Process& parent, std::vector<Child>& found) {
  for (const pid_t child : children_of(parent))
    found.push_back({.number = child, .parent = parent.number});
}

/// A process that lost its parent while lists were read has moved to PID 1, whose children were
/// listed before.
void ProcessList::add_adopted(std::vector<Child>& found) {
  std::vector<Child> known = found;
  std::ranges::sort(known, {}, &Child::number);
  for (const pid_t child : children_of_pid1())
    if (!std::ranges::binary_search(known, child, {}, &Child::number))
      found.push_back({.number = child, .parent = pid1_.number});
}

/// PID 1 always has a single thread, so its threads need not be listed.
std::vector<pid_t> ProcessList::children_of_pid1() {
  std::vector<pid_t> children;
  add_listed(pid1_.children, proc(),
             pid1_.directory + "/task/" + pid1_.directory.substr(pid1_.directory.rfind('/') + 1) +
                 "/children",
             children);
  return children;
}

std::vector<pid_t> ProcessList::children_of(Process& process) {
  std::vector<pid_t> children;
  // A thread's number may have been reused, which an open descriptor doesn't show; the process's
  // directory belongs to the process itself.
  for (const pid_t thread : list_threads(process)) {
    UniqueFd once;
    const bool is_first = thread == process.number;
    add_listed(is_first ? process.children : once, process.task.get(),
               std::to_string(thread) + "/children", children);
    if (once.valid()) --kept_;
  }
  if (kept_ >= most_kept_) process.task.reset();
  std::ranges::sort(children);
  return children;
}

std::vector<pid_t> ProcessList::threads_of(Process& process) {
  std::vector<pid_t> threads = list_threads(process);
  if (kept_ >= most_kept_) process.task.reset();
  return threads;
}

/// Keeps the directory of its threads open.
std::vector<pid_t> ProcessList::list_threads(Process& process) {
  std::vector<Entry> entries;
  if (process.task.valid()) entries = entries_from(process.task.get(), 0);
  if (entries.empty()) {  // new, or the number was reused
    process.children.reset();
    process.statm.reset();
    process.task = UniqueFd(::openat(proc(), (process.directory + "/task").c_str(),
                                     O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!process.task.valid()) return {};
    entries = entries_from(process.task.get(), 0);
    ++kept_;
  }
  std::vector<pid_t> threads;
  threads.reserve(entries.size());
  for (const Entry& entry : entries) threads.push_back(entry.number);
  std::ranges::sort(threads);
  return threads;
}

/// Reads a file such as task/TID/children in full: seq_file(9) either fills the buffer or is at its
/// end.
void ProcessList::add_listed(UniqueFd& file, int at, const std::string& path,
                             std::vector<pid_t>& children) {
  constexpr std::size_t kLongest = 16;  // a number and a space
  std::array<char, 4096> room;
  std::string list;
  std::string_view part;
  do {
    part = read_kept(file, at, path, room, list.size());
    list += part;
  } while (part.size() + kLongest > room.size());
  add_numbers(list, children);
}

// ---- reading ----

/// Reads through the kept descriptor. Without one it opens the file, and keeps the descriptor if
/// the limit allows.
std::string_view ProcessList::read_kept(UniqueFd& file, int at, const std::string& path,
                                        std::span<char> room, std::size_t offset) {
  const auto read = [&](int fd) {
    const ssize_t got = ::pread(fd, room.data(), room.size(), static_cast<off_t>(offset));
    return std::string_view(room.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  };
  if (file.valid()) return read(file.get());
  UniqueFd opened(::openat(at, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened.valid()) return {};
  const std::string_view text = read(opened.get());
  if (kept_ < most_kept_) {
    file = std::move(opened);
    ++kept_;
  }
  return text;
}

std::string_view ProcessList::statm(Process& process) {
  const auto holds = [](std::string_view text) { return !text.empty() && !text.starts_with("0 "); };
  std::string_view text = statm_of_first(process);
  process.holder = holds(text) ? process.number : 0;
  if (process.holder != 0 || text.empty()) return text;
  for (const pid_t thread : threads_of(process)) {
    if (thread == process.number) continue;
    const std::string path = process.directory + "/task/" + std::to_string(thread) + "/statm";
    text = read_small(proc(), path, room_);
    if (!holds(text)) continue;
    process.holder = thread;
    return text;
  }
  return {};
}

std::string ProcessList::memory_directory(const Process& process) {
  if (process.holder == 0 || process.holder == process.number) return process.directory;
  return process.directory + "/task/" + std::to_string(process.holder);
}

std::string_view ProcessList::statm_of_first(Process& process) {
  const std::string path = process.directory + "/statm";
  if (process.statm.valid()) {
    const std::string_view text = read_kept(process.statm, -1, path, room_, 0);
    if (!text.empty()) return text;
    process.statm.reset();
  }
  return read_kept(process.statm, proc(), path, room_, 0);
}

/// A process chooses its own name, prctl(2) PR_SET_NAME: control characters are replaced.
std::string ProcessList::name(const Process& process) const {
  std::array<char, 64> room;
  std::string name(read_small(proc(), process.directory + "/comm", room));
  if (name.ends_with('\n')) name.pop_back();
  std::ranges::replace_if(name, [](char each) { return each < ' ' || each >= '\x7f'; }, '?');
  return name;
}

/// The kernel adds the number of threads to the two links of the directory (proc_task_getattr).
std::uint64_t ProcessList::tasks_of(const Process& process) const {
  struct stat facts{};
  if (::fstatat(proc(), (process.directory + "/task").c_str(), &facts, 0) != 0) return 1;
  return std::max<std::uint64_t>(facts.st_nlink, 3) - 2;
}

std::uint64_t ProcessList::tasks() const {
  std::uint64_t tasks = 0;
  for (const Process& process : all_) tasks += tasks_of(process);
  return tasks;
}

Largest largest_process(ProcessList& processes) {
  Largest found;
  const ProcessList::Process* largest = nullptr;
  for (ProcessList::Process& process : processes.all()) {
    const std::uint64_t bytes = resident_bytes(processes.statm(process));
    if (bytes <= found.bytes) continue;
    found.bytes = bytes;
    largest = &process;
  }
  if (largest != nullptr) found.name = processes.name(*largest);
  return found;
}

std::uint64_t resident_sum(ProcessList& processes) {
  std::uint64_t sum = 0;
  for (ProcessList::Process& process : processes.all())
    sum += resident_bytes(processes.statm(process));
  return sum;
}

}  // namespace sbx::supervise
