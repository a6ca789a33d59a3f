#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "supervise/meters/tmpfs_use.hpp"

namespace sbx::supervise {

/// Growth of live grants on a tmpfs of the host. No process's counters include what it writes
/// there, by write(2) or through a mapping, so the growth of the whole file system is the evidence,
/// whoever caused it: the kernel accounts for every page when it is allocated (fstatfs(2)),
/// including swapped pages and unnamed files. Growth is relative to the lowest level seen, so
/// deleting files makes no room. Overwriting in place is not growth. Names, empty files and
/// extended attributes use no such pages: they count by the inodes charged for them.
class GrowthMeter {
 public:
  GrowthMeter() = default;
  /// Records the usage of the file systems of `places` before the command runs, and of those of
  /// `doubtful` that turn out to be in memory. Errors: setup "uncountable-grant".
  [[nodiscard]] static Result<GrowthMeter> make(const std::vector<std::string>& places,
                                                const std::vector<std::string>& doubtful);

  /// What was found about the doubtful ones.
  [[nodiscard]] const std::vector<Degraded>& degraded() const { return degraded_; }
  [[nodiscard]] bool is_needed() const { return !grown_.empty(); }
  /// Bytes above the lowest levels now.
  [[nodiscard]] std::uint64_t look();
  /// The time until the next look: before `room` bytes can be written.
  [[nodiscard]] static std::uint64_t next_look_microseconds(std::uint64_t room, int cpus);

 private:
  struct FileSystem {
    UniqueFd place;
    dev_t device = 0;
    TmpfsUse lowest;
  };
  Status add(const std::string& path);

  std::vector<FileSystem> grown_;
  std::vector<Degraded> degraded_;
};

}  // namespace sbx::supervise
