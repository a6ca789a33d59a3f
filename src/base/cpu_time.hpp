#pragma once

#include <cstdint>

namespace sbx {

/// CPU time of a process or of a whole tree.
struct CpuTime {
  std::uint64_t user_microseconds = 0;
  std::uint64_t system_microseconds = 0;
  [[nodiscard]] std::uint64_t total() const { return user_microseconds + system_microseconds; }
};

}  // namespace sbx
