#pragma once

#include <cstdint>

#include "base/argument_area.hpp"
#include "base/result.hpp"
#include "cli/invocation.hpp"

namespace sbx::cli {

/// Facts about sbx's own process.
struct OwnProcess {
  ArgumentArea arguments;
  std::uint64_t started = 0;  ///< start of main, in microseconds on CLOCK_MONOTONIC
};

/// `sbx run`. Returns its exit status.
[[nodiscard]] int run_command(const Invocation& typed, const OwnProcess& process);

/// A program that comes from standard input needs one. Errors: usage "cannot-read".
[[nodiscard]] Status check_program_input(const Invocation& typed);

/// Handles an invalid command line of `sbx run`: reports the error on stderr and, if `typed` still
/// requests one, in a record.
[[nodiscard]] int refuse_run(const Invocation& typed, const Error& error);

}  // namespace sbx::cli
