#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace sbx::supervise {

/// A process that holds more memory than the others.
struct Largest {
  std::string name;         ///< its comm, without control characters; empty: not known
  std::uint64_t bytes = 0;  ///< resident
};

/// The largest process below PID 1. `processes`: a procfs of the sandbox, or -1.
[[nodiscard]] Largest largest_process(pid_t pid1, int processes);

}  // namespace sbx::supervise
