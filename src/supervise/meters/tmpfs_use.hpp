#pragma once

#include <cstdint>
#include <optional>

namespace sbx::supervise {

/// What a tmpfs holds, by fstatfs(2); an overlay answers for the one that its upper layer lies on.
struct TmpfsUse {
  std::uint64_t content = 0;  ///< bytes in files
  /// Each file, folder and further hard link is one, and so is, from Linux 6.6 on, each KiB of extended attributes
  /// (shmem_reserve_inode, simple_xattr_space): memory that is in no block. Nothing where the mount has no limit of
  /// inodes: then the kernel keeps no count of them.
  std::optional<std::uint64_t> entries;
};

/// What the kernel takes an entry for (BOGO_INODE_SIZE).
inline constexpr std::uint64_t kEntryBytes = 1024;
/// What one takes up: a file with the longest name 1.4 KiB, of attributes up to two for each that is
/// counted, for the kernel rounds them up to a power of two.
inline constexpr std::uint64_t kEntryMemory = 2048;

/// Nothing when the file system does not know how full it is.
[[nodiscard]] std::optional<TmpfsUse> tmpfs_use(int place);

}  // namespace sbx::supervise
