#pragma once

#include <cstdint>
#include <vector>

namespace sbx::supervise {

/// A file as it was seen: it counts as another one when it was written since.
struct FullFile {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t modified = 0;  ///< st_mtime in nanoseconds

  [[nodiscard]] bool operator==(const FullFile&) const = default;
};

struct FullFiles {
  std::vector<FullFile> files;
  bool complete = true;  ///< false: there are entries that were not examined
};

/// The files below `directory` that are exactly `size` bytes long: a write that exceeds
/// RLIMIT_FSIZE first fills the file up to the limit. Examines 4,096 entries, 16 directories deep,
/// and follows no links.
[[nodiscard]] FullFiles files_of_size(int directory, std::uint64_t size);

/// The same on a private disk, and nothing if it is known to hold less than one such file. -1: no
/// disk. `size` 0: nothing is limited.
[[nodiscard]] FullFiles files_of_size_on_disk(int disk, std::uint64_t size);

}  // namespace sbx::supervise
