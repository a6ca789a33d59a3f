#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "supervise/meters/process_list.hpp"

namespace sbx::supervise {

/// What the processes of a sandbox have written to the host's disks, by looking at their counters
/// (/proc/PID/io, "write_bytes"; tmpfs is not in them). The kernel adds the count of a child that was
/// waited for to its parent's. Of one that nobody in the sandbox waited for is missed what it wrote
/// after the last look, and all of it if it lived between two looks.
class WriteMeter {
 public:
  explicit WriteMeter(ProcessList& processes) : processes_(processes) {}

  /// Bytes up to now.
  [[nodiscard]] std::uint64_t look();
  /// The name of a process that can't be asked, as of the last looks; empty when there is none.
  [[nodiscard]] const std::string& unreadable() const { return unreadable_; }
  /// When to look again: before what is left of the budget can be written.
  [[nodiscard]] std::uint64_t next_look_microseconds(std::uint64_t budget) const;

 private:
  struct Seen {
    pid_t parent = 0;
    std::uint64_t written = 0;
    unsigned refused = 0;  ///< looks in succession
  };
  using Processes = std::map<pid_t, Seen>;

  [[nodiscard]] Processes processes_now();
  [[nodiscard]] std::optional<std::uint64_t> written_by(const std::string& folder) const;
  [[nodiscard]] std::optional<std::uint64_t> written_by(ProcessList::Process& process);
  void note_unreadable(ProcessList::Process& process, Seen& seen);
  void keep_of_ended(const Processes& now);

  ProcessList& processes_;
  Processes last_;
  std::uint64_t ended_ = 0;
  std::uint64_t total_ = 0;
  bool doubtful_ = false;  ///< one could not be asked now
  std::string unreadable_;
};

}  // namespace sbx::supervise
