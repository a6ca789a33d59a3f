#pragma once

#include <cstdint>
#include <string>

#include "supervise/meters/process_list.hpp"

namespace sbx::supervise {

/// The process with the most memory.
struct Largest {
  std::string name;         ///< its comm, without control characters; empty: unknown
  std::uint64_t bytes = 0;  ///< resident
};

/// The largest of the processes as listed.
[[nodiscard]] Largest largest_process(ProcessList& processes);

}  // namespace sbx::supervise
