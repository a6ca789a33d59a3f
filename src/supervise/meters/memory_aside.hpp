#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "supervise/meters/process_list.hpp"

namespace sbx::supervise {

/// A page of page tables has an entry of 8 bytes for each page that it covers: one of 4 KiB covers
/// 2 MiB.
inline std::uint64_t addresses_per_byte_of_table() {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return page / 8;
}

/// Memory in use on the whole machine, sysinfo(2), in bytes.
struct HostMemory {
  std::uint64_t swap = 0;
  std::uint64_t shared = 0;  ///< all tmpfs, and shared memory of all kinds
};
[[nodiscard]] HostMemory host_memory();

/// Memory of a sandbox's processes that none of their resident sizes includes. Reading it costs
/// more than all other meters together, so it is read only if it could matter for the budget.
class MemoryAside {
 public:
  struct Sum {
    std::uint64_t tables = 0;   ///< page tables
    std::uint64_t swapped = 0;  ///< pages shared by several processes count in each
  };
  /// Known from the resident sizes and the private tmpfs.
  struct Known {
    std::uint64_t addresses = 0;  ///< bytes of all address spaces
    std::uint64_t shared = 0;     ///< shared memory in bytes, an upper bound
    std::uint64_t budget = 0;
    std::uint64_t matters = 0;  ///< smallest number of bytes worth a look
  };

  explicit MemoryAside(ProcessList& processes) : processes_(processes) {}

  /// True if the program may hold pages of shared memory that no process maps, which last as long
  /// as any page of the object is mapped. No file of /proc counts them; only the machine's total
  /// does, which includes other programs, so it decides nothing. Reported once the total has grown
  /// by more than the whole budget while a process of the sandbox had shared memory.
  [[nodiscard]] bool may_keep_unmapped() const { return may_keep_unmapped_; }

  /// Examines the listed processes; `borrowers`, sorted, use another process's memory.
  [[nodiscard]] Sum look(const HostMemory& host, const Known& known,
                         const std::vector<pid_t>& borrowers);

 private:
  [[nodiscard]] bool any_has_shared_memory();

  ProcessList& processes_;
  bool may_keep_unmapped_ = false;
  HostMemory least_{.swap = UINT64_MAX, .shared = UINT64_MAX};  ///< minimum over all looks
};

}  // namespace sbx::supervise
