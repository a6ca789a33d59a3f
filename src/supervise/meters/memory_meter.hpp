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

/// Memory of a sandbox where no cgroup counts it: the anonymous memory of its processes, and what its private tmpfs and
/// shared mappings hold, page tables and what was swapped out; of the tmpfs its entries too, kEntryMemory each. Not seen: memory
/// of a memfd that nobody has mapped, what System V's calls make (the filter refuses memfd_create, shmget, semget and msgget under
/// this means), pipe buffers. The model and what each estimate guarantees: sbx-security(7), "How memory is polled".
class MemoryMeter {
 public:
  /// `scratch`: a borrowed descriptor on the private tmpfs, or -1.
  /// `sockets`: borrowed, or null.
  MemoryMeter(ProcessList& processes, int scratch, SocketMeter* sockets = nullptr)
      : processes_(processes), scratch_(scratch), sockets_(sockets), beside_(processes) {}

  /// Bytes in use by the processes as listed. A cheap upper bound while that is within `budget`: pages
  /// that several processes share since a fork count in each. Beyond it a lower bound, if that is too:
  /// what the largest holds alone. Between the two the proportional set sizes decide, which count each
  /// page once and cost milliseconds.
  [[nodiscard]] std::uint64_t look(std::uint64_t budget);
  /// CPU time (us) that the last look() spent reading smaps and lists of sockets; each has a share of its own.
  [[nodiscard]] std::uint64_t walk_cost() const { return walk_cost_ + socket_cost_; }
  /// The largest look() so far.
  [[nodiscard]] std::uint64_t peak() const { return peak_; }
  /// Of what was used at the last look, bytes in sockets.
  [[nodiscard]] std::uint64_t in_sockets() const { return in_sockets_; }
  [[nodiscard]] bool may_keep_unmapped() const { return beside_.may_keep_unmapped(); }
  /// Bytes in files of the private tmpfs.
  [[nodiscard]] std::uint64_t scratch_used() const { return scratch_use().content; }

 private:
  struct Bounds {
    std::uint64_t size = 0;       ///< of all address spaces
    std::uint64_t anonymous = 0;  ///< of all
    std::uint64_t largest = 0;    ///< of one of them
    std::uint64_t shared = 0;     ///< mapped files too
  };
  struct Memory {
    std::uint64_t anonymous = 0;
    std::uint64_t faults = 0;
    std::uint64_t after = 0;  ///< anonymous memory when the walk was over
    std::uint64_t started = 0;
  };
  struct Exact {
    std::uint64_t anonymous = 0;  ///< swapped out or not
    std::uint64_t rest = 0;
  };
  /// Of all pages, and what was there when it began.
  struct Walk {
    std::uint64_t began = 0;  ///< microseconds, as the cost
    std::uint64_t cost = 0;
    std::uint64_t used = 0;
    std::uint64_t rest = 0;         ///< what is not anonymous, or more
    std::uint64_t surely_rest = 0;  ///< what of that was found to be there
    std::uint64_t scratch = 0;
    std::uint64_t largest = 0;  ///< anonymous memory of one process
    std::map<pid_t, Memory> processes;
  };
  struct Shared {
    std::uint64_t all = 0;
    std::uint64_t memory = 0;    ///< of no file of a disk
    std::uint64_t fileless = 0;  ///< of no file at all, or more
  };
  [[nodiscard]] TmpfsUse scratch_use() const;
  /// Beside the processes' own pages and shared ones, as of the last look.
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
  bool in_doubt_ = false;         ///< beyond the budget by no more than a counter may be off
  std::vector<pid_t> borrowers_;  ///< processes that run in another's memory, sorted
  MemoryAside beside_;
  MemoryAside::Sum aside_;         ///< as of the last look
  std::uint64_t used_ = 0;         ///< by the last look
  std::uint64_t in_sockets_ = 0;   ///< as of the last listing
  std::uint64_t socket_cost_ = 0;  ///< of the last look, as the walk's
  std::uint64_t entries_ = 0;      ///< bytes for those of the private tmpfs, as of the last look
  Shared shared_then_;             ///< when they were last told apart
  std::uint64_t walk_cost_ = 0;
  std::optional<Walk> walk_;  ///< the last one, while the upper bound is near the budget
  std::uint64_t peak_ = 0;
};

/// What a program may get beyond its budget before it is ended: 5 % or 16 MiB.
[[nodiscard]] std::uint64_t allowed_beyond(std::uint64_t budget_bytes);

/// When to look again: not before so much could be gone, 1 to 50 ms. What grows is trusted to take up to
/// 8 GB/s by the next look, what rests to begin with 2.5.
[[nodiscard]] std::uint64_t next_look_microseconds(std::uint64_t bytes, bool rests);

/// How often is often enough: a program that takes 1.5 GB/s gets no more than half of what is allowed.
[[nodiscard]] std::uint64_t often_enough_microseconds(std::uint64_t budget_bytes);

}  // namespace sbx::supervise
