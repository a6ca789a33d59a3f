#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "supervise/meters/memory_aside.hpp"
#include "supervise/meters/process_list.hpp"
#include "supervise/meters/socket_meter.hpp"
#include "supervise/meters/tmpfs_use.hpp"

namespace sbx::supervise {

/// Memory of a sandbox without a memory cgroup: the anonymous memory of its processes, the contents
/// of its private tmpfs and shared mappings, page tables and swapped pages; also the entries of the
/// tmpfs, kEntryMemory each. Not included: memory of a memfd that no process maps, System V shared
/// memory and semaphores (in this mode the filter denies memfd_create, shmget, semget and msgget),
/// pipe buffers. For the model and the guarantee of each estimate see sbx-security(7), THE POLLING
/// MODEL.
class MemoryMeter {
 public:
  /// `scratch`: a borrowed descriptor on the private tmpfs, or -1. `sockets`: borrowed, or null.
  MemoryMeter(ProcessList& processes, int scratch, SocketMeter* sockets = nullptr)
      : processes_(processes), scratch_(scratch), sockets_(sockets), beside_(processes) {}

  /// Bytes in use by the listed processes. Within `budget` this is a cheap upper bound: pages
  /// shared since a fork count in each process. Beyond it, the result is a lower bound if that
  /// exceeds the budget too: what the largest process alone holds. Between the two bounds the
  /// proportional set sizes decide; they count each page once and take milliseconds to read.
  [[nodiscard]] std::uint64_t look(std::uint64_t budget);
  /// CPU time (us) that the last look() spent reading smaps and lists of sockets; each has its own
  /// share.
  [[nodiscard]] std::uint64_t walk_cost() const { return walk_cost_ + socket_cost_; }
  /// The largest result of look() so far.
  [[nodiscard]] std::uint64_t peak() const { return peak_; }
  /// The sockets' part of the usage at the last look, in bytes.
  [[nodiscard]] std::uint64_t in_sockets() const { return in_sockets_; }
  [[nodiscard]] bool may_keep_unmapped() const { return beside_.may_keep_unmapped(); }

 private:
  struct Bounds {
    std::uint64_t size = 0;       ///< of all address spaces
    std::uint64_t anonymous = 0;  ///< of all processes
    std::uint64_t largest = 0;    ///< of the largest process
    std::uint64_t shared = 0;     ///< includes mapped files
  };
  struct Memory {
    std::uint64_t anonymous = 0;
    std::uint64_t faults = 0;
    std::uint64_t after = 0;  ///< anonymous memory at the end of the walk
    std::uint64_t started = 0;
  };
  struct Exact {
    std::uint64_t anonymous = 0;  ///< including swapped pages
    std::uint64_t rest = 0;
  };
  /// A walk through all pages, and the state when it began.
  struct Walk {
    std::uint64_t began = 0;  ///< in microseconds, like the cost
    std::uint64_t cost = 0;
    std::uint64_t used = 0;
    std::uint64_t rest = 0;         ///< non-anonymous memory, an upper bound
    std::uint64_t surely_rest = 0;  ///< the part of it that was found
    std::uint64_t scratch = 0;
    std::uint64_t largest = 0;  ///< anonymous memory of the largest process
    std::map<pid_t, Memory> processes;
  };
  struct Shared {
    std::uint64_t all = 0;
    std::uint64_t memory = 0;    ///< in no file on a disk
    std::uint64_t fileless = 0;  ///< in no file at all; an upper bound
  };
  [[nodiscard]] TmpfsUse scratch_use() const;
  /// Bytes in files of the private tmpfs.
  [[nodiscard]] std::uint64_t scratch_used() const { return scratch_use().content; }
  /// Memory other than the processes' own and shared pages, as of the last look.
  [[nodiscard]] std::uint64_t surely_aside() const {
    return aside_.tables + in_sockets_ + entries_;
  }
  [[nodiscard]] std::uint64_t estimate(std::uint64_t budget);
  [[nodiscard]] Bounds bounds();
  void find_borrowers();
  [[nodiscard]] bool borrows(const ProcessList::Process& process) const;
  [[nodiscard]] std::uint64_t upper_bound(const Bounds& now, std::uint64_t scratch,
                                          std::uint64_t budget);
  [[nodiscard]] std::uint64_t with_shared(const Bounds& now, std::uint64_t scratch,
                                          std::uint64_t budget);
  [[nodiscard]] Shared shared_memory(std::uint64_t scratch, std::uint64_t budget);
  [[nodiscard]] std::uint64_t decide(const Bounds& now, std::uint64_t rest, std::uint64_t budget);
  [[nodiscard]] std::uint64_t since_walk(std::uint64_t rest);
  [[nodiscard]] std::uint64_t surely_since_walk(std::uint64_t rest);
  [[nodiscard]] std::uint64_t walk(std::uint64_t rest);
  [[nodiscard]] std::optional<Exact> bounds_of_slow(ProcessList::Process& process,
                                                    std::uint64_t& tables);
  [[nodiscard]] Exact exact();
  [[nodiscard]] Memory memory_of(ProcessList::Process& process);

  ProcessList& processes_;
  int scratch_;
  SocketMeter* sockets_;
  bool in_doubt_ = false;         ///< beyond the budget by no more than the counters' error
  std::vector<pid_t> borrowers_;  ///< processes that use another's memory, sorted
  MemoryAside beside_;
  MemoryAside::Sum aside_;         ///< as of the last look
  std::uint64_t used_ = 0;         ///< result of the last look
  std::uint64_t in_sockets_ = 0;   ///< as of the last listing
  std::uint64_t socket_cost_ = 0;  ///< of the last look, counted like the walk's
  std::uint64_t entries_ = 0;  ///< bytes for the entries of the private tmpfs, as of the last look
  Shared shared_then_;         ///< from the last time they were distinguished
  std::uint64_t walk_cost_ = 0;
  std::optional<Walk> walk_;  ///< the last one, kept while the upper bound is near the budget
  std::uint64_t peak_ = 0;
};

/// How far a program may exceed its budget before it is ended: 5 % or 16 MiB.
[[nodiscard]] std::uint64_t allowed_beyond(std::uint64_t budget_bytes);

/// The time until the next look, 1 to 50 ms: before that many `bytes` can be allocated. Assumes up
/// to 8 GB/s for usage that grows, and 2.5 GB/s at first for usage at rest.
[[nodiscard]] std::uint64_t next_look_microseconds(std::uint64_t bytes, bool rests);

/// The interval that limits a program allocating 1.5 GB/s to half of allowed_beyond().
[[nodiscard]] std::uint64_t often_enough_microseconds(std::uint64_t budget_bytes);

}  // namespace sbx::supervise
