#include "supervise/meters/growth_meter.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

namespace sbx::supervise {
namespace {

Error uncountable(const std::string& path, const char* why, const char* cure) {
  return {.kind = ErrorKind::setup,
          .code = "uncountable-grant",
          .message = "limits.disk can't be kept in the live grant '" + path +
                     "': its file system, in memory, " + why,
          .hint = std::string(cure) + "grant it copy-on-write, or grant a directory elsewhere"};
}

/// How far `now` is above `lowest`, which is updated.
std::uint64_t growth(std::uint64_t now, std::uint64_t& lowest) {
  lowest = std::min(lowest, now);
  return now - lowest;
}

/// True if the kernel counts this process's writes to an unnamed file in the directory `path`.
/// Empty if that can't be tried.
std::optional<bool> is_counted(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (!file.valid()) return std::nullopt;
  static constexpr std::array<char, 4096> kPage{};
  rusage before{};
  rusage after{};
  ::getrusage(RUSAGE_SELF, &before);
  if (::write(file.get(), kPage.data(), kPage.size()) < 0) return std::nullopt;
  ::getrusage(RUSAGE_SELF, &after);
  return after.ru_oublock > before.ru_oublock;  // the same count as write_bytes
}

}  // namespace

Result<GrowthMeter> GrowthMeter::make(const std::vector<std::string>& places,
                                      const std::vector<std::string>& doubtful) {
  GrowthMeter meter;
  for (const std::string& path : places) SBX_TRY(meter.add(path));
  for (const std::string& path : doubtful) {
    const auto counted = is_counted(path);
    if (counted == true) continue;
    if (counted == false) SBX_TRY(meter.add(path));
    meter.degraded_.push_back(
        {.promise = Promise::disk,
         .why = counted
                    ? "'" + path + "' is an overlay that lies in memory"
                    : "'" + path + "' is an overlay, and whether it lies in memory can't be tried",
         .instead = counted ? "what its whole file system grows by counts, whoever writes there"
                            : "it is taken for one on a disk"});
  }
  return meter;
}

Status GrowthMeter::add(const std::string& path) {
  FileSystem found{.place = UniqueFd(::open(path.c_str(), O_PATH | O_CLOEXEC))};
  struct stat facts{};
  const bool is_open = found.place.valid() && ::fstat(found.place.get(), &facts) == 0;
  const auto used = is_open ? tmpfs_use(found.place.get()) : std::nullopt;
  if (!used) return fail(uncountable(path, "does not say how full it is", ""));
  if (!used->entries)
    return fail(uncountable(path,
                            "has no limit of inodes, without which names and extended attributes "
                            "are not counted",
                            "mount it with nr_inodes=1m, "));
  found.device = facts.st_dev;
  found.lowest = *used;
  if (std::ranges::find(grown_, found.device, &FileSystem::device) == grown_.end())
    grown_.push_back(std::move(found));
  return {};
}

std::uint64_t GrowthMeter::look() {
  std::uint64_t sum = 0;
  for (FileSystem& each : grown_) {
    // After a remount the file system has no size or limit: usage is unknown, and all of it could
    // be growth.
    constexpr std::uint64_t kAll = UINT64_MAX / 1024 / kEntryBytes;
    const TmpfsUse used =
        tmpfs_use(each.place.get()).value_or(TmpfsUse{.content = kAll, .entries = kAll});
    sum += growth(used.content, each.lowest.content) +
           growth(used.entries.value_or(kAll), *each.lowest.entries) * kEntryBytes;
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
