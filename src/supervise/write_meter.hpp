#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

namespace sbx::supervise {

/// What the processes of a sandbox have written to the host's disks, by looking at their counters
/// (/proc/PID/io, "write_bytes"; tmpfs is not in them). The kernel adds the count of a child that was
/// waited for to its parent's. Of one that nobody in the sandbox waited for is missed what it wrote
/// after the last look, and all of it if it lived between two looks.
class WriteMeter {
 public:
  /// `processes`: a procfs of the sandbox, or -1 for the host's.
  WriteMeter(pid_t pid1, int processes) : pid1_(pid1), processes_(processes) {}

  /// Bytes up to now.
  [[nodiscard]] std::uint64_t look();

 private:
  pid_t pid1_;
  int processes_;
  struct Process {
    std::string parent;  ///< a folder as well
    std::uint64_t written = 0;
  };
  using Processes = std::map<std::string, Process>;  ///< by folder below /proc

  [[nodiscard]] Processes processes_now();
  void keep_of_ended(const Processes& now);

  Processes last_;
  std::uint64_t ended_ = 0;
};

/// When to look again, in microseconds: before what is left can be written.
[[nodiscard]] std::uint64_t next_write_look_microseconds(std::uint64_t headroom_bytes);

}  // namespace sbx::supervise
