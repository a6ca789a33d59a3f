#pragma once

#include <sys/types.h>

#include <cstdint>

namespace sbx::supervise {

/// Memory of a sandbox where no cgroup counts it: the anonymous memory of its processes, and what its private tmpfs and
/// shared mappings hold. Not seen: memory of a memfd that nobody has mapped (the filter refuses memfd_create under this
/// means), detached SysV segments (bounded by kernel.shmall of the sandbox), socket and pipe buffers.
class MemoryMeter {
 public:
  /// Descriptors are borrowed and may be -1: the private tmpfs, a procfs of the sandbox.
  MemoryMeter(pid_t pid1, int scratch, int processes)
      : pid1_(pid1), scratch_(scratch), processes_(processes) {}

  /// Bytes in use. A cheap upper bound while that is within `budget`: pages that several processes share since a fork
  /// count in each. Beyond it the proportional set sizes decide, which count each page once and cost milliseconds.
  [[nodiscard]] std::uint64_t look(std::uint64_t budget);
  /// The largest look() so far.
  [[nodiscard]] std::uint64_t peak() const { return peak_; }
  /// Bytes on the private tmpfs.
  [[nodiscard]] std::uint64_t scratch_used() const;

 private:
  struct Tree;
  [[nodiscard]] std::uint64_t upper_bound(const Tree& tree) const;
  [[nodiscard]] std::uint64_t exact(const Tree& tree) const;

  pid_t pid1_;
  int scratch_;
  int processes_;
  std::uint64_t peak_ = 0;
};

/// When to look again: memory can't grow faster than 8 GB/s, so not before the headroom could be gone; 1 to 50 ms.
[[nodiscard]] std::uint64_t next_look_microseconds(std::uint64_t headroom_bytes);

}  // namespace sbx::supervise
