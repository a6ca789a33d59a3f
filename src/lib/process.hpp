#pragma once

#include <string>
#include <string_view>
#include <vector>

/// One process of the installed sbx, and what it wrote. Not installed: the bodies of <sbx/run.hpp>
/// and <sbx/session.hpp>.
namespace sbx::lib {

/// Of sbx's record pipe, above the standard streams, which belong to the caller.
inline constexpr int kReportDescriptor = 3;

struct Command {
  std::vector<std::string> words;      ///< the first one is the program
  int answers_on = kReportDescriptor;  ///< or STDOUT_FILENO
  bool drops_output = false;           ///< stdout, where it has no answer
  bool keeps_messages = false;         ///< stderr; else it is the caller's
  const std::string* input = nullptr;  ///< standard input; null: the caller's
};

struct End {
  int errno_value = 0;   ///< 0 unless it could not be started
  std::string error;     ///< why
  int exit_status = -1;  ///< 128 + signal of a process that a signal ended
  std::string answer;
  std::string messages;
};

/// Starts it and waits for its end. Thread-safe.
[[nodiscard]] End run_command(const Command& command);

/// `typed`, or sbx's installed name.
[[nodiscard]] std::string program_or_installed(const std::string& typed);

}  // namespace sbx::lib
