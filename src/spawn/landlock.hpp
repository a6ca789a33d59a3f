#pragma once

#include <cstddef>
#include <cstdint>

/// Landlock's interface up to ABI 7, landlock(7); Debian 12's headers stop at ABI 2. Child-safe.
namespace sbx::child::landlock {

struct Ruleset {
  std::uint64_t handled_access_fs;
  std::uint64_t handled_access_net;  // ABI 4
  std::uint64_t scoped;              // ABI 6
};
struct [[gnu::packed]] PathBeneath {
  std::uint64_t allowed_access;
  std::int32_t parent_fd;
};
inline constexpr int kPathBeneath = 1;

enum Right : std::uint64_t {
  execute = 1 << 0,
  write_file = 1 << 1,
  read_file = 1 << 2,
  read_dir = 1 << 3,
  remove_dir = 1 << 4,
  remove_file = 1 << 5,
  make_char = 1 << 6,
  make_dir = 1 << 7,
  make_reg = 1 << 8,
  make_sock = 1 << 9,
  make_fifo = 1 << 10,
  make_block = 1 << 11,
  make_sym = 1 << 12,
  refer = 1 << 13,      // ABI 2
  truncate = 1 << 14,   // ABI 3
  ioctl_dev = 1 << 15,  // ABI 5
};
inline constexpr std::uint64_t kSignalScope = 2;
inline constexpr std::uint64_t kScopes = 1 | kSignalScope;  // 1: abstract unix sockets
/// The rights that a rule on a file may grant; others fail with EINVAL.
inline constexpr std::uint64_t kRightsOfFile =
    execute | write_file | read_file | truncate | ioctl_dev;

/// Every file right that the ABI has: all are handled, so that anything without a rule is denied.
[[nodiscard]] constexpr std::uint64_t file_rights(int abi) {
  std::uint64_t rights = (1 << 13) - 1;
  if (abi >= 2) rights |= refer;
  if (abi >= 3) rights |= truncate;
  if (abi >= 5) rights |= ioctl_dev;
  return rights;
}
/// Older kernels refuse a longer structure with a non-zero tail, but always accept a shorter one.
[[nodiscard]] constexpr std::size_t ruleset_size(int abi) {
  return abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
}

}  // namespace sbx::child::landlock
