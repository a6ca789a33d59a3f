#pragma once

#include <cstdint>
#include <optional>

namespace sbx::supervise {

/// Usage of a tmpfs, from fstatfs(2); an overlay returns that of its upper layer's tmpfs.
struct TmpfsUse {
  std::uint64_t content = 0;  ///< bytes in files
  /// Files, directories and additional hard links count as one each and, since Linux 6.6, so does
  /// each KiB of extended attributes (shmem_reserve_inode, simple_xattr_space): this memory is in
  /// no block. Empty if the mount has no inode limit: then the kernel doesn't count.
  std::optional<std::uint64_t> entries;
};

/// The size that the kernel assumes for an entry (BOGO_INODE_SIZE).
inline constexpr std::uint64_t kEntryBytes = 1024;
/// The real size of an entry: 1.4 KiB for a file with the longest name, and up to 2 KiB for each
/// counted KiB of attributes, because the kernel rounds up to a power of two.
inline constexpr std::uint64_t kEntryMemory = 2048;

/// Empty if the file system doesn't count its usage.
[[nodiscard]] std::optional<TmpfsUse> tmpfs_use(int place);

}  // namespace sbx::supervise
