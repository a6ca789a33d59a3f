#pragma once

#include <cstdint>
#include <string>

#include "supervise/meters/process_list.hpp"

namespace sbx::supervise {

/// A process that holds more memory than the others.
struct Largest {
  std::string name;         ///< its comm, without control characters; empty: not known
  std::uint64_t bytes = 0;  ///< resident
};

/// The largest of the processes as listed.
[[nodiscard]] Largest largest_process(ProcessList& processes);

}  // namespace sbx::supervise
