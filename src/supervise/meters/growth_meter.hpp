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

/// What live grants on a tmpfs of the host have grown by. No process's count has what it writes
/// there, by write(2) or through a mapping, so the growth of the whole file system is the evidence,
/// whoever caused it: the kernel takes every page into account when it is made (fstatfs(2)), swapped
/// out or without a name as well. Growth is from the lowest level seen, so that what is deleted
/// meanwhile makes no room. What replaces other content in place is no growth. Names, files without
/// content and extended attributes are in no page of it: they count by the inodes they are charged for.
class GrowthMeter {
 public:
  GrowthMeter() = default;
  /// Remembers how full the file systems of `places` are, before the command runs, and of those of
  /// `doubtful` that turn out to be in memory. Errors: setup "uncountable-grant".
  [[nodiscard]] static Result<GrowthMeter> make(const std::vector<std::string>& places,
                                                const std::vector<std::string>& doubtful);

  /// What was found of those in doubt.
  [[nodiscard]] const std::vector<Degraded>& degraded() const { return degraded_; }
  [[nodiscard]] bool is_needed() const { return !grown_.empty(); }
  /// Bytes by which they are above their lowest levels now.
  [[nodiscard]] std::uint64_t look();
  /// When to look again: before `room` bytes can be written.
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
