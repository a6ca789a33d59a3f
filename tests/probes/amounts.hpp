#pragma once

#include <cstddef>

#include "probe.hpp"

/// Shared by probes that use up an amount of something.
namespace probe {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;
inline char block[kMiB];

std::size_t mebibytes(const char* text);

/// Like refused(), after holding its resources for a moment: at the end nothing of them would be
/// visible, and some limits don't report refusals.
int refused_for_a_while();

/// -1 and errno if not all of it could be written.
int write_fully(int fd, std::size_t size);

/// Fails with ECHILD if one of them failed.
int wait_for_children();

}  // namespace probe
