#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

namespace sbx::supervise {

/// What the processes of a sandbox have written to the host's disks, by looking at their counters
/// (/proc/PID/io, "write_bytes"; tmpfs is not in them). What an ended process wrote after the last
/// look is missed, and the whole of one that lived between two looks.
class WriteMeter {
 public:
  /// `processes`: a procfs of the sandbox, or -1 for the host's.
  WriteMeter(pid_t pid1, int processes) : pid1_(pid1), processes_(processes) {}

  /// Bytes up to now.
  [[nodiscard]] std::uint64_t look();

 private:
  pid_t pid1_;
  int processes_;
  std::map<std::string, std::uint64_t> last_;  // by folder below /proc
  std::uint64_t ended_ = 0;
};

/// When to look again, in microseconds: before what is left can be written.
[[nodiscard]] std::uint64_t next_write_look_microseconds(std::uint64_t headroom_bytes);

}  // namespace sbx::supervise
