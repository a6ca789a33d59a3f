#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/host.hpp"

/// What keeps the files of a live grant: it decides how limits.disk can be held there.
namespace sbx::plan {

enum class Medium : std::uint8_t {
  disk,        ///< or whatever else: the kernel counts in each process what it makes dirty
  unseen,      ///< an overlay: its upper layer may be gone from sight, only a trial tells
  memory,      ///< a tmpfs: in no process's count, but the file system knows how full it is
  uncountable  ///< memory that nobody counts
};

/// Of `path`, canonical, by what is mounted there or, for an overlay, where its upper layer lies.
[[nodiscard]] Medium medium_of(const std::string& path,
                               const std::vector<host::MountPoint>& mounts);

}  // namespace sbx::plan
