#pragma once

#include <sys/stat.h>
#include <unistd.h>

namespace sbx {

/// Somebody else put `entry` into a sticky `directory` that everybody can write to, such as /tmp:
/// its owner is neither the caller nor the directory's owner. The rule of fs.protected_regular,
/// Documentation/admin-guide/sysctl/fs.rst.
[[nodiscard]] inline bool is_planted(const struct stat& directory, const struct stat& entry) {
  constexpr mode_t kOpenToAll = S_ISVTX | S_IWOTH;
  return (directory.st_mode & kOpenToAll) == kOpenToAll && entry.st_uid != ::geteuid() &&
         entry.st_uid != directory.st_uid;
}

}  // namespace sbx
