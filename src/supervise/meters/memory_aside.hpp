#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "supervise/meters/process_list.hpp"

namespace sbx::supervise {

/// A page table of 4096 bytes stands for 2 MiB.
inline constexpr std::uint64_t kAddressesPerByteOfTable = 512;

/// What the whole machine has in use, sysinfo(2), in bytes.
struct HostMemory {
  std::uint64_t swap = 0;
  std::uint64_t shared = 0;  ///< every tmpfs, and shared memory of all kinds
};
[[nodiscard]] HostMemory host_memory();

/// Memory that belongs to the processes of a sandbox and is in none of their resident sizes. To ask
/// for it costs more than all the rest: it is done where it could matter beside the budget.
class MemoryAside {
 public:
  struct Sum {
    std::uint64_t tables = 0;   ///< page tables
    std::uint64_t swapped = 0;  ///< pages that several share count in each
  };
  /// What the resident sizes and the private tmpfs say.
  struct Known {
    std::uint64_t addresses = 0;  ///< bytes of all address spaces
    std::uint64_t shared = 0;     ///< bytes of shared memory, or more
    std::uint64_t budget = 0;
    std::uint64_t matters = 0;  ///< bytes that are worth a look
  };

  explicit MemoryAside(ProcessList& processes) : processes_(processes) {}

  /// Whether pages of shared memory may be kept that nobody maps, as long as any page of it is mapped. No file of /proc counts
  /// them but the total of the machine, which is other programs' too: it decides nothing. Said once the total has grown by more
  /// than the whole budget while a process here had shared memory.
  [[nodiscard]] bool may_keep_unmapped() const { return may_keep_unmapped_; }

  /// Of the processes as listed; `borrowers`, sorted, run in another's memory.
  [[nodiscard]] Sum look(const HostMemory& host, const Known& known,
                         const std::vector<pid_t>& borrowers);

 private:
  [[nodiscard]] bool any_has_shared_memory();

  ProcessList& processes_;
  bool may_keep_unmapped_ = false;
  HostMemory least_{.swap = UINT64_MAX, .shared = UINT64_MAX};  ///< of all looks
};

}  // namespace sbx::supervise
