#include "supervise/meters/write_meter.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "supervise/meters/process_tree.hpp"

namespace sbx::supervise {
namespace {

/// The number after "write_bytes: ", proc(5); 0 if the process has ended.
std::uint64_t written_in(std::string_view text) {
  constexpr std::string_view kName = "\nwrite_bytes: ";
  const auto at = text.find(kName);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + kName.size());
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// The fourth field of /proc/PID/stat, after a name that may contain anything; 0 if the process has
/// ended.
pid_t parent_in(std::string_view stat) {
  const auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || stat.size() < name_end + 4) return 0;
  stat.remove_prefix(name_end + 4);  // ") S "
  pid_t parent = 0;
  std::from_chars(stat.data(), stat.data() + stat.size(), parent);
  return parent;
}

/// True for a process that has executed nothing since its fork(2): PF_FORKNOEXEC of the ninth
/// field, proc(5).
bool has_no_program(std::string_view stat) {
  constexpr std::uint64_t kForkNoExec = 0x40;
  constexpr int kFieldsBetween = 5;  // the state and the flags
  const auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || stat.size() < name_end + 4) return false;
  stat.remove_prefix(name_end + 4);
  for (int i = 0; i < kFieldsBetween; ++i) {
    const auto space = stat.find(' ');
    if (space == std::string_view::npos) return false;
    stat.remove_prefix(space + 1);
  }
  std::uint64_t flags = 0;
  std::from_chars(stat.data(), stat.data() + stat.size(), flags);
  return (flags & kForkNoExec) != 0;
}

/// Its number in the innermost PID namespace is 2: the first child of an init, sbx's own until it
/// executes the command.
bool is_first_child(std::string_view status) {
  constexpr std::string_view kName = "\nNSpid:";
  const auto at = status.find(kName);
  if (at == std::string_view::npos) return false;
  const std::string_view line = status.substr(at + 1, status.find('\n', at + 1) - at - 1);
  return line.ends_with("\t2");
}

constexpr unsigned kLooksToBeSure = 8;

}  // namespace

/// Empty if it can't be read.
std::optional<std::uint64_t> WriteMeter::written_by(const std::string& directory) const {
  std::array<char, 1024> room;
  const std::string_view text = read_small(processes_.proc(), directory + "/io", room);
  if (text.empty()) return std::nullopt;
  return written_in(text);
}

/// If the first thread has exited (pthread_exit(3) in main), /proc/PID/io belongs to the host's
/// root. /proc also has an unlisted directory for each other thread by its number, and that covers
/// the whole process (proc_pid_lookup).
std::optional<std::uint64_t> WriteMeter::written_by(ProcessList::Process& process) {
  if (const auto written = written_by(process.directory)) return written;
  const std::string place = process.directory.substr(0, process.directory.rfind('/') + 1);
  for (const pid_t thread : processes_.threads_of(process))
    if (const auto written = written_by(place + std::to_string(thread))) return written;
  return std::nullopt;
}

/// The command has PID 1's flag, and is non-dumpable, until its first execve(2): on a busy machine
/// for many looks.
bool WriteMeter::is_before_its_program(const ProcessList::Process& process) const {
  std::array<char, 4096> room;
  return has_no_program(read_small(processes_.proc(), process.directory + "/stat", room)) &&
         is_first_child(read_small(processes_.proc(), process.directory + "/status", room));
}

/// Records a live process whose counters can't be read: its program file is not readable, or it
/// used prctl(2) PR_SET_DUMPABLE. A look can also hit the end of the command's first execve(2).
void WriteMeter::note_unreadable(ProcessList::Process& process, Seen& seen) {
  (void)processes_.statm(process);
  if (is_before_its_program(process)) return;
  seen.refused = process.holder != 0 ? seen.refused + 1 : 0;
  doubtful_ = doubtful_ || seen.refused > 0;
  if (seen.refused >= kLooksToBeSure) unreadable_ = processes_.name(process);
}

WriteMeter::Processes WriteMeter::processes_now() {
  Processes now;
  std::array<char, 1024> room;
  processes_.refresh();
  doubtful_ = false;
  for (ProcessList::Process& process : processes_.all()) {
    const auto before = last_.find(process.number);
    Seen seen;
    if (before != last_.end()) seen = before->second;
    // The parent that may wait for it: later it can only change to PID 1.
    if (seen.parent == 0)
      seen.parent = parent_in(read_small(processes_.proc(), process.directory + "/stat", room));
    if (const auto written = written_by(process)) {
      seen.written = std::max(seen.written, *written);
      seen.refused = 0;
    } else if (holder_ == 0 || seen.parent != holder_) {
      note_unreadable(process, seen);
    }
    now.emplace(process.number, seen);
  }
  return now;
}

/// The nearest living ancestor's count includes what an ended process had written, as far as that
/// count has grown; only the remainder is kept.
void WriteMeter::keep_of_ended(const Processes& now) {
  std::map<pid_t, std::uint64_t> grown;
  for (const auto& [number, process] : now)
    if (const auto before = last_.find(number); before != last_.end())
      grown[number] = process.written - before->second.written;
  for (const auto& [number, process] : last_) {
    if (now.contains(number)) continue;
    pid_t ancestor = process.parent;
    for (auto up = last_.find(ancestor); up != last_.end() && !now.contains(ancestor);
         up = last_.find(ancestor))
      ancestor = up->second.parent;
    std::uint64_t kept = process.written;
    if (const auto heir = grown.find(ancestor); heir != grown.end()) {
      const std::uint64_t inherited = std::min(kept, heir->second);
      heir->second -= inherited;
      kept -= inherited;
    }
    ended_ += kept;
  }
}

std::uint64_t WriteMeter::look() {
  Processes now = processes_now();
  keep_of_ended(now);
  last_ = std::move(now);
  total_ = ended_;
  for (const auto& [number, process] : last_) total_ += process.written;
  return total_;
}

std::uint64_t WriteMeter::next_look_microseconds(std::uint64_t budget) const {
  constexpr std::uint64_t kBytesPerMicrosecond = 2000;
  constexpr std::uint64_t kShortest = 2000;
  if (doubtful_) return kShortest;
  const std::uint64_t headroom = budget - std::min(budget, total_);
  return std::clamp<std::uint64_t>(headroom / kBytesPerMicrosecond, kShortest, 50'000);
}

}  // namespace sbx::supervise
