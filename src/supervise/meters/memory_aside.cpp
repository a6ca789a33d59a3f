#include "supervise/meters/memory_aside.hpp"

#include <sys/sysinfo.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "supervise/meters/fileless_memory.hpp"
#include "supervise/meters/process_tree.hpp"

namespace sbx::supervise {

HostMemory host_memory() {
  struct sysinfo facts{};
  if (::sysinfo(&facts) != 0) return {};
  return {.swap = (facts.totalswap - std::min(facts.totalswap, facts.freeswap)) * facts.mem_unit,
          .shared = facts.sharedram * facts.mem_unit};
}

/// Number of mappings read per process; if there are more, a doubt is reported.
constexpr std::size_t kMostMappingsAside = 512;

bool MemoryAside::any_has_shared_memory() {
  return std::ranges::any_of(processes_.all(), [&](ProcessList::Process& process) {
    (void)processes_.statm(process);
    std::size_t mappings = kMostMappingsAside;
    return process.holder != 0 &&
           fileless_memory(processes_.proc(), ProcessList::memory_directory(process) + "/maps",
                           mappings)
                   .size > 0;
  });
}

/// Tables: one page of them covers 2 MiB of addresses with pages of 4 KiB, even if a program only
/// read there once, so many tables use memory without any pages. Swapped: MADV_PAGEOUT of
/// madvise(2) moves pages to swap.
MemoryAside::Sum MemoryAside::look(const HostMemory& host, const Known& known,
                                   const std::vector<pid_t>& borrowers) {
  least_.swap = std::min(least_.swap, host.swap);
  least_.shared = std::min(least_.shared, host.shared);
  Sum sum;
  const std::uint64_t shared = host.shared - least_.shared;
  if (!may_keep_unmapped_ && shared > known.shared + known.budget)
    may_keep_unmapped_ = any_has_shared_memory();
  if (known.addresses / addresses_per_byte_of_table() < known.matters &&
      host.swap - least_.swap < known.matters)
    return sum;
  std::array<char, 4096> room;
  for (const ProcessList::Process& process : processes_.all()) {
    if (std::ranges::binary_search(borrowers, process.number)) continue;
    const std::string_view text =
        read_small(processes_.proc(), ProcessList::memory_directory(process) + "/status", room);
    sum.tables += kilobytes_of(text, "VmPTE:") * 1024;
    sum.swapped += kilobytes_of(text, "VmSwap:") * 1024;
  }
  return sum;
}

}  // namespace sbx::supervise
