#include "supervise/meters/tmpfs_use.hpp"

#include <sys/vfs.h>

namespace sbx::supervise {

std::optional<TmpfsUse> tmpfs_use(int place) {
  struct statfs facts{};
  if (::fstatfs(place, &facts) != 0 || facts.f_blocks == 0) return std::nullopt;
  TmpfsUse use{
      .content = (facts.f_blocks - facts.f_bfree) * static_cast<std::uint64_t>(facts.f_bsize),
      .entries = std::nullopt};
  if (facts.f_files > 0) use.entries = facts.f_files - facts.f_ffree;
  return use;
}

}  // namespace sbx::supervise
