#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/host.hpp"

/// The storage behind a live grant: it decides how limits.disk can be enforced there.
namespace sbx::plan {

enum class Medium : std::uint8_t {
  disk,        ///< or anything else: the kernel counts the pages each process dirties
  unseen,      ///< an overlay: its upper layer may be invisible, so only trying tells
  memory,      ///< a tmpfs: in no process's count, but the file system knows its usage
  uncountable  ///< memory that nothing counts
};

/// For a canonical `path`: the type of its mount or, for an overlay, of the mount with its upper
/// layer.
[[nodiscard]] Medium medium_of(const std::string& path,
                               const std::vector<host::MountPoint>& mounts);

}  // namespace sbx::plan
