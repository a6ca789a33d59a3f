#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "supervise/meters/process_list.hpp"

namespace sbx::supervise {

/// What the processes of a sandbox have written to the host's disks, from their counters
/// (/proc/PID/io, "write_bytes", which excludes tmpfs). The kernel adds the count of a reaped child
/// to its parent's. For a child that nobody in the sandbox waited for, this misses what it wrote
/// after the last look, and all of it if it lived between two looks.
class WriteMeter {
 public:
  /// `holder`: PID 1 of a session, whose children are the inits of calls: sbx's own, unreadable,
  /// and without writes of their own; 0: none.
  explicit WriteMeter(ProcessList& processes, pid_t holder = 0)
      : processes_(processes), holder_(holder) {}

  /// Bytes up to now.
  [[nodiscard]] std::uint64_t look();
  /// The name of a process whose counters could not be read in the last looks; empty if there is
  /// none.
  [[nodiscard]] const std::string& unreadable() const { return unreadable_; }
  /// The time until the next look: before the rest of the budget can be written.
  [[nodiscard]] std::uint64_t next_look_microseconds(std::uint64_t budget) const;

 private:
  struct Seen {
    pid_t parent = 0;
    std::uint64_t written = 0;
    unsigned refused = 0;  ///< consecutive failed looks
  };
  using Processes = std::map<pid_t, Seen>;

  [[nodiscard]] Processes processes_now();
  [[nodiscard]] std::optional<std::uint64_t> written_by(const std::string& directory) const;
  [[nodiscard]] std::optional<std::uint64_t> written_by(ProcessList::Process& process);
  [[nodiscard]] bool is_before_its_program(const ProcessList::Process& process) const;
  void note_unreadable(ProcessList::Process& process, Seen& seen);
  void keep_of_ended(const Processes& now);

  ProcessList& processes_;
  pid_t holder_;
  Processes last_;
  std::uint64_t ended_ = 0;
  std::uint64_t total_ = 0;
  bool doubtful_ = false;  ///< some process could not be read now
  std::string unreadable_;
};

}  // namespace sbx::supervise
