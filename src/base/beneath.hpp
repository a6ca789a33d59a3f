#pragma once

#include <linux/openat2.h>

#include <cstdint>

namespace sbx {

/// openat2(2): beneath the directory, through no link, on its own file system.
inline constexpr std::uint64_t kBeneath =
    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;

}  // namespace sbx
