#include "supervise/growth_meter.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <optional>

namespace sbx::supervise {
namespace {

/// Nothing when the file system does not know.
std::optional<std::uint64_t> used_bytes(int place) {
  struct statfs facts{};
  if (::fstatfs(place, &facts) != 0 || facts.f_blocks == 0) return std::nullopt;
  return (facts.f_blocks - facts.f_bfree) * static_cast<std::uint64_t>(facts.f_bsize);
}

}  // namespace

Result<GrowthMeter> GrowthMeter::make(const std::vector<std::string>& places) {
  GrowthMeter meter;
  for (const std::string& path : places) {
    FileSystem found{.place = UniqueFd(::open(path.c_str(), O_PATH | O_CLOEXEC))};
    struct stat facts{};
    const bool is_open = found.place.valid() && ::fstat(found.place.get(), &facts) == 0;
    const auto used = is_open ? used_bytes(found.place.get()) : std::nullopt;
    if (!used)
      return fail({.kind = ErrorKind::setup,
                   .code = "uncountable-grant",
                   .message = "limits.disk can't be kept in the live grant '" + path +
                              "': its file system, in memory, does not say how full it is",
                   .hint = "grant it copy-on-write, or grant a folder elsewhere"});
    found.device = facts.st_dev;
    found.lowest = *used;
    if (std::ranges::find(meter.grown_, found.device, &FileSystem::device) == meter.grown_.end())
      meter.grown_.push_back(std::move(found));
  }
  return meter;
}

std::uint64_t GrowthMeter::look() {
  std::uint64_t sum = 0;
  for (FileSystem& each : grown_) {
    // Without a size any more, by a remount: nothing is known, and all of it could be growth.
    const std::uint64_t used = used_bytes(each.place.get()).value_or(UINT64_MAX / 1024);
    each.lowest = std::min(each.lowest, used);
    sum += used - each.lowest;
  }
  return sum;
}

std::uint64_t GrowthMeter::next_look_microseconds(std::uint64_t room, int cpus) {
  constexpr std::uint64_t kBytesPerMicrosecond = 4000;  // of one CPU
  constexpr std::uint64_t kShortest = 500;
  const auto writers = static_cast<std::uint64_t>(std::max(cpus, 1));
  return std::clamp<std::uint64_t>(room / (kBytesPerMicrosecond * writers), kShortest, 50'000);
}

}  // namespace sbx::supervise
