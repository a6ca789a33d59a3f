#pragma once

#include <sys/types.h>
#include <sys/vfs.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"

namespace sbx::supervise {

/// What a file system has no more of.
struct Exhausted {
  bool blocks = false;
  bool names = false;
};
[[nodiscard]] Exhausted exhausted(const struct statfs& facts);
/// Tells what the file system of this descriptor lacks; nothing where that can't be told.
[[nodiscard]] Exhausted exhausted(int directory);

/// Measures a private disk in a directory by walking through it, one piece at a time so that the
/// loop isn't blocked. It misses open files without a name. If the program makes a directory
/// unreadable for its owner, the space that the file system has lost since the start counts
/// instead.
class DiskMeter {
 public:
  /// Borrowed; -1: measure nothing.
  explicit DiskMeter(int directory);

  /// Reads some more names; true when a walk is complete and the figures are new.
  bool step();
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t files() const { return files_; }

 private:
  void look_into(const std::string& directory);
  [[nodiscard]] std::uint64_t lost() const;

  int directory_;
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
