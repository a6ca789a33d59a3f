#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sbx::supervise {

/// What a process has mapped of shared memory that is no file of any mount: of mmap(2) with MAP_SHARED and without a file,
/// memfd_create(2) and shmget(2). The kernel keeps all of it on a tmpfs of its own, by whose device its mappings are known.
struct FilelessMemory {
  std::uint64_t size = 0;      ///< bytes of address space; UINT64_MAX: not known
  std::uint64_t resident = 0;  ///< bytes of it that are certainly there, out of smaps
};

/// `file`, below `proc`: /proc/PID/maps, or smaps, where each page is divided by how often it is mapped. `mappings`: how many are
/// read at most, and what is left of that afterwards; where there are more, the size is not known. One takes 0.5 us in maps, in
/// smaps 3, beside the time for its pages.
[[nodiscard]] FilelessMemory fileless_memory(int proc, const std::string& file,
                                             std::size_t& mappings);

}  // namespace sbx::supervise
