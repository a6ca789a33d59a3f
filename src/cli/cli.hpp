#pragma once

#include <cstdint>
#include <span>

#include "base/argument_area.hpp"

namespace sbx::cli {

/// Facts about sbx's own process, from main.
struct Process {
  std::span<const char* const> arguments;  ///< argv without its first element
  ArgumentArea area;                       ///< argv and environment in memory
  std::uint64_t started = 0;               ///< microseconds on CLOCK_MONOTONIC
};

/// The whole program after main. Returns the exit status.
[[nodiscard]] int main_of(const Process& process);

}  // namespace sbx::cli
