#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// One run's request besides the policy: the command and its connections. Filled by cli, read by
/// plan.
namespace sbx::plan {

enum class StdinMode : std::uint8_t { inherit, null, file };

/// A file to copy in: --in FILE[:TARGET].
struct Input {
  std::string source;  ///< as typed, relative to the caller's working directory
  std::string target;  ///< as typed, inside; empty: the program's working directory
};

struct RunRequest {
  /// All words from the first operand on, byte for byte. With `code` or `code_from_stdin`: the
  /// program's arguments.
  std::vector<std::string> operands;
  /// A sandbox that stays, for calls: no command, interpreters of all languages are shown.
  bool hold = false;
  bool after_dashes = false;        ///< `--` came first: operands[0] is always a command
  std::string language;             ///< --lang, empty if none
  std::optional<std::string> code;  ///< -c CODE
  bool code_from_stdin = false;     ///< the operand `-`: the program comes from standard input
  bool interactive = false;         ///< -i: run on a pty of the sandbox's own
  StdinMode stdin_mode = StdinMode::inherit;
  std::string stdin_file;
  /// --env NAME=VALUE, --env-file, --env-fd; overrides the policy.
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<Input> inputs;  ///< --in
  /// --cwd, of a call: where its command begins, from the session's directory on; empty: there.
  std::string directory;
  std::vector<std::string> require;  ///< --require
  bool explain = false;              ///< --explain: report path lookups
  /// A call has its client's. Not set: the umask of the process that makes the sandbox.
  std::optional<mode_t> umask;
};

}  // namespace sbx::plan
