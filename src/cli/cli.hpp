#pragma once

#include <cstdint>
#include <span>

#include "base/argument_area.hpp"

namespace sbx::cli {

/// What main knows of its own process.
struct Process {
  std::span<const char* const> arguments;  ///< argv without its first element
  ArgumentArea area;                       ///< argv and environment as they lie in memory
  std::uint64_t started = 0;               ///< microseconds on CLOCK_MONOTONIC
};

/// The whole of sbx behind main; gives the exit status.
[[nodiscard]] int main_of(const Process& process);

}  // namespace sbx::cli
