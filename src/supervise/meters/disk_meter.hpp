#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"

namespace sbx::supervise {

/// What a private disk in a folder takes up: a walk through it, a piece at a time, so that the loop
/// is never held up. Not seen: files that are open and have no name any more. A folder that the
/// program closed to its owner can't be walked: then what the file system lost since the start
/// counts.
class DiskMeter {
 public:
  /// Borrowed; -1: nothing is measured.
  explicit DiskMeter(int folder);

  /// Looks at some more names; true when a walk is complete and the numbers are new.
  bool step();
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t files() const { return files_; }

 private:
  void look_into(const std::string& folder);
  [[nodiscard]] std::uint64_t lost() const;

  int folder_;
  std::uint64_t free_at_start_ = 0;
  std::vector<std::string> waiting_;
  std::uint64_t counting_bytes_ = 0;
  std::uint64_t counting_files_ = 0;
  std::uint64_t looked_ = 0;
  bool closed_ = false;
  std::uint64_t bytes_ = 0;
  std::uint64_t files_ = 0;
};

}  // namespace sbx::supervise
