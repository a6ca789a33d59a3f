#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace sbx::changes {

/// A directory that the run saw at its start, and in which something changed.
struct DirectoryLine {
  std::string path;
  ino_t inode = 0;
  mode_t mode = 0;
};

/// A change that the run made and the set has not.
struct LostChange {
  std::string path;
  std::string why;
  int errno_value = 0;  ///< not stored
};

/// What there is to know about a set besides its changes.
struct KeptFacts {
  std::string name;
  std::int64_t made = 0;  ///< seconds since the epoch
  std::string directory;  ///< the workspace, on the host
  std::string run;        ///< id of its record
  std::vector<std::string> command;
  std::string outcome;  ///< how the run ended, in words
  bool success = false;
  std::vector<std::string> policy_files;  ///< of the run: never applied
  std::uint64_t count = 0;                ///< of changes
  std::uint64_t bytes = 0;                ///< of what was written
  std::vector<LostChange> lost;           ///< for want of room, for example
  /// When some were applied last, in seconds since the epoch; 0: never.
  std::int64_t applied_at = 0;
  std::uint64_t applied = 0;  ///< how many then
};

}  // namespace sbx::changes
