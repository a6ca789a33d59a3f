#include "supervise/largest.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "supervise/process_tree.hpp"

namespace sbx::supervise {
namespace {

/// The second field of /proc/PID/statm, in pages: proc(5).
std::uint64_t resident_bytes(std::string_view statm) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  statm.remove_prefix(std::min(statm.find(' '), statm.size()));
  statm.remove_prefix(std::min(statm.find_first_not_of(' '), statm.size()));
  std::uint64_t pages = 0;
  std::from_chars(statm.data(), statm.data() + statm.size(), pages);
  return pages * page;
}

/// A process names itself, prctl(2) PR_SET_NAME: what a terminal would obey is left out.
std::string printable(std::string_view name) {
  std::string text;
  for (const char each : name)
    if (each == '\n')
      break;
    else
      text += each >= ' ' && each < '\x7f' ? each : '?';
  return text;
}

}  // namespace

Largest largest_process(ProcessList& processes) {
  Largest found;
  std::string place;
  for (ProcessList::Process& process : processes.all()) {
    const std::uint64_t bytes = resident_bytes(processes.statm(process));
    if (bytes <= found.bytes) continue;
    found.bytes = bytes;
    place = process.folder;
  }
  std::array<char, 256> room;
  if (!place.empty()) found.name = printable(read_small(processes.proc(), place + "/comm", room));
  return found;
}

}  // namespace sbx::supervise
