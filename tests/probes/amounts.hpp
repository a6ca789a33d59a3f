#pragma once

#include <cstddef>

#include "probe.hpp"

/// What probes share that use up so and so much of something.
namespace probe {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;
inline char block[kMiB];

std::size_t mebibytes(const char* text);

/// refused(), after a moment in which it holds on to what it has: nothing of it is left to be seen
/// at the end, and not every means is told of a refusal.
int refused_for_a_while();

/// -1 and errno when not all of it could be written.
int write_fully(int fd, std::size_t size);

/// Refused with ECHILD when one of them failed.
int wait_for_children();

}  // namespace probe
