#pragma once

#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

/// The linker's: the program's first byte in memory.
extern "C" const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));  // NOLINT

namespace sbx {

/// Lets go of the program's own pages that were read from its file, code above all: what a start
/// needed is not needed while the run goes on. The kernel brings back, from its page cache, what is
/// used again. Calls nothing but madvise(2), and can't fail.
inline void release_program_pages() {
  const auto headers = ::getauxval(AT_PHDR);
  const auto count = ::getauxval(AT_PHNUM);
  // Addresses are numbers in the auxiliary vector, getauxval(3), and in program headers.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const auto* const segments = reinterpret_cast<const Elf64_Phdr*>(headers);
  if (segments == nullptr) return;
  std::size_t first = 0;
  while (first < count && segments[first].p_type != PT_LOAD) ++first;
  if (first == count) return;
  // A static program has no PT_PHDR, which would show where it was loaded.
  const auto base = reinterpret_cast<std::uintptr_t>(&__ehdr_start) -
                    (segments[first].p_vaddr - segments[first].p_offset);
  const std::uintptr_t page = ::getauxval(AT_PAGESZ);
  for (std::size_t i = 0; i < count; ++i) {
    const Elf64_Phdr& segment = segments[i];
    // What is writable, if only until relocation was over, is in no file.
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = (base + segment.p_vaddr) & ~(page - 1);
    const std::uintptr_t end = (base + segment.p_vaddr + segment.p_filesz) & ~(page - 1);
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    if (end > begin) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
}

}  // namespace sbx
