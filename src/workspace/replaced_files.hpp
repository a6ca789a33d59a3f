#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"

/// Files of the host that were replaced or deleted, kept open until many of them can be freed at
/// once. To free a file is the slow part of replacing it: an ext4 with `discard` and no journal
/// waits for the disk at each one, and looks in vain at every number that was freed before each new
/// file.
namespace sbx::workspace {

class ReplacedFiles {
 public:
  /// Raises the process's own limit of open files as far as it may; the destructor sets it back.
  ReplacedFiles();
  ReplacedFiles(const ReplacedFiles&) = delete;
  ReplacedFiles& operator=(const ReplacedFiles&) = delete;
  ~ReplacedFiles();

  /// The file that is about to lose its name. Never fails: one that can't be kept open is freed
  /// when its name is removed.
  void keep(int directory, const std::string& name, const struct stat& facts);
  /// Frees them, several at a time. True if there were any.
  bool free_all();

 private:
  std::vector<UniqueFd> files_;
  std::uint64_t bytes_ = 0;
  std::uint64_t most_files_ = 0;
  std::uint64_t limit_before_ = 0;
};

}  // namespace sbx::workspace
