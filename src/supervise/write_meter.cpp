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

}  // namespace

std::uint64_t WriteMeter::look() {
  std::map<std::string, std::uint64_t> now;
  std::array<char, 512> room;
  std::uint64_t total = 0;
  for (std::string& folder : processes_of(pid1_, processes_)) {
    const auto before = last_.extract(folder);
    const std::uint64_t least = before.empty() ? 0 : before.mapped();
    const std::uint64_t seen =
        std::max(least, written_in(read_small(proc_of(processes_), folder + "/io", room)));
    total += seen;
    now.emplace(std::move(folder), seen);
  }
  for (const auto& [folder, written] : last_) ended_ += written;  // those that are there no more
  last_ = std::move(now);
  return total + ended_;
}

std::uint64_t next_write_look_microseconds(std::uint64_t headroom_bytes) {
  constexpr std::uint64_t kBytesPerMicrosecond = 2000;
  return std::clamp<std::uint64_t>(headroom_bytes / kBytesPerMicrosecond, 2000, 50'000);
}

}  // namespace sbx::supervise
