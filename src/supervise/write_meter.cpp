#include "supervise/write_meter.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "supervise/process_tree.hpp"

namespace sbx::supervise {
namespace {

/// The number after "write_bytes: ", proc(5); 0 when the process is gone.
std::uint64_t written_in(std::string_view text) {
  constexpr std::string_view kName = "\nwrite_bytes: ";
  const auto at = text.find(kName);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + kName.size());
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// The folder of the parent: the fourth field of /proc/PID/stat, after a name that may hold anything.
std::string parent_in(const std::string& folder, std::string_view stat) {
  const auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || stat.size() < name_end + 4) return {};
  stat.remove_prefix(name_end + 4);  // ") S "
  const auto slash = folder.rfind('/');
  const std::string place = slash == std::string::npos ? "" : folder.substr(0, slash + 1);
  return place + std::string(stat.substr(0, stat.find(' ')));
}

}  // namespace

WriteMeter::Processes WriteMeter::processes_now() {
  Processes now;
  std::array<char, 1024> room;
  const int proc = proc_of(processes_);
  for (std::string& folder : processes_of(pid1_, processes_)) {
    const auto before = last_.find(folder);
    Process process;
    if (before != last_.end()) process = before->second;
    process.written = std::max(process.written, written_in(read_small(proc, folder + "/io", room)));
    // Whoever waits for it: later it can only become PID 1.
    if (process.parent.empty())
      process.parent = parent_in(folder, read_small(proc, folder + "/stat", room));
    now.emplace(std::move(folder), std::move(process));
  }
  return now;
}

/// What a process that is gone had written is in the count of the nearest ancestor that is left, as
/// far as that has grown: then it is not kept a second time.
void WriteMeter::keep_of_ended(const Processes& now) {
  std::map<std::string, std::uint64_t> grown;
  for (const auto& [folder, process] : now)
    if (const auto before = last_.find(folder); before != last_.end())
      grown[folder] = process.written - before->second.written;
  for (const auto& [folder, process] : last_) {
    if (now.contains(folder)) continue;
    std::string ancestor = process.parent;
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
  std::uint64_t total = ended_;
  for (const auto& [folder, process] : last_) total += process.written;
  return total;
}

std::uint64_t next_write_look_microseconds(std::uint64_t headroom_bytes) {
  constexpr std::uint64_t kBytesPerMicrosecond = 2000;
  return std::clamp<std::uint64_t>(headroom_bytes / kBytesPerMicrosecond, 2000, 50'000);
}

}  // namespace sbx::supervise
