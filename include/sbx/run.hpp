#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sbx/record.hpp>

/// Runs programs under a policy by starting the installed `sbx`. Only that process clones, so the
/// sandbox gets none of the calling program's memory or threads. Needs no other library.
namespace sbx {

struct RunOptions {
  /// Path of sbx, or a name that is searched on PATH; empty: its installed name.
  std::string program{};
  /// Options of `sbx run`: {"--policy", "strict", "--timeout", "5s"}.
  std::vector<std::string> arguments;
  /// The command or script and its arguments; {"-"} as in sbx-run(1).
  std::vector<std::string> command;
  /// Keep the program's output in the record; false: it goes to the caller's stdout and stderr.
  bool capture = true;
};

struct RunResult {
  int exit_status = 0;   ///< of `sbx run`, sbx-run(1), "EXIT STATUS"
  bool success = false;  ///< the command exited with 0
  /// "exited", "over-budget", "lost", "setup-failed": outcome.status of the record
  std::string status;
  std::string record;  ///< JSON, sbx-record(5); empty if sbx could not write one
  /// The record as types, <sbx/record.hpp>; empty if nothing ran.
  std::optional<Outcome> outcome;
  std::optional<Error> error;  ///< why nothing ran
};

/// Why sbx itself could not be started.
struct RunError {
  int errno_value = 0;
  std::string message;  ///< "cannot start 'sbx': No such file or directory"
};

struct RunAnswer {
  std::optional<RunResult> result;
  RunError error;  ///< if there is no result
};

/// Waits for the end of the run. Standard input is the caller's. Thread-safe. The run is cancelled
/// when the calling process ends.
[[nodiscard]] RunAnswer run_program(const RunOptions& options);

}  // namespace sbx
