#pragma once

#include <cstdint>

#include "base/argument_area.hpp"
#include "base/result.hpp"
#include "cli/invocation.hpp"

namespace sbx::cli {

/// What a run needs to know of sbx's own process.
struct OwnProcess {
  ArgumentArea arguments;
  std::uint64_t started = 0;  ///< of main, in microseconds on CLOCK_MONOTONIC
};

/// `sbx run`: gives its exit status.
[[nodiscard]] int run_command(const Invocation& typed, const OwnProcess& process);

/// A command line of `sbx run` that could not be read: told to people and, where `typed` still says
/// so, in a record.
[[nodiscard]] int refuse_run(const Invocation& typed, const Error& error);

}  // namespace sbx::cli
