#include "supervise/meters/largest.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

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

}  // namespace

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

}  // namespace sbx::supervise
