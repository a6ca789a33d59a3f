#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sbx::supervise {

/// A process's mappings of shared memory that belongs to no mounted file: from mmap(2) with
/// MAP_SHARED and no file, memfd_create(2) and shmget(2). The kernel keeps all of it on an internal
/// tmpfs, whose device number identifies the mappings.
struct FilelessMemory {
  std::uint64_t size = 0;      ///< bytes of address space; UINT64_MAX: unknown
  std::uint64_t resident = 0;  ///< bytes of it that are certainly present, from smaps
};

/// `file`, below `proc`, is /proc/PID/maps, or smaps, where each page is divided by the number of
/// its mappings. `mappings` is the number to read at most, reduced by those read; if there are
/// more, the size is unknown. Each takes 0.5 us in maps, or 3 us in smaps plus the time for its
/// pages.
[[nodiscard]] FilelessMemory fileless_memory(int proc, const std::string& file,
                                             std::size_t& mappings);

}  // namespace sbx::supervise
