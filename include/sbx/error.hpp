#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What went wrong before or around a run. A program that misbehaves is not an Error but a Verdict
/// (outcome.hpp).
namespace sbx {

/// Where a value comes from, weakest layer first (sbx-policy(5), "Merge").
enum class Layer : std::uint8_t { key_default, builtin, file, command_line };

/// The place of a value: a file and position, or a command-line option. Lines and columns count
/// from 1; 0 is unknown.
struct Origin {
  /// "data-analysis.toml", "/home/me/p.toml", "--set", "--read"; empty for a key's own default
  std::string file;
  int line = 0;
  int column = 0;
  Layer layer = Layer::key_default;

  /// "p.toml:14", "--read" or "built-in default".
  [[nodiscard]] std::string text() const;
  bool operator==(const Origin&) const = default;
};

enum class ErrorKind : std::uint8_t {
  usage,           ///< the command line
  policy,          ///< what a policy says
  host,            ///< what this machine can't do
  setup,           ///< a step of building the sandbox failed
  internal,        ///< sbx contradicts itself
  not_found,       ///< the command does not exist (exit 127)
  not_executable,  ///< the command can't be run (exit 126)
};

/// What a run can do instead after a failed set-up, at the price of an entry in `degraded`.
enum class Retry : std::uint8_t {
  none,              ///< nothing
  with_copies,       ///< a writable overlay is not possible here
  disk_in_memory,    ///< the directory of the private disk can't hold whiteouts
  without_listener,  ///< a seccomp listener outside of sbx leaves no room for another (EBUSY)
};

struct Error {
  ErrorKind kind = ErrorKind::internal;
  std::string code;     ///< stable, kebab-case: "unknown-key", "no-user-namespace"
  std::string message;  ///< a sentence, lower case, no full stop
  int errno_value = 0;  ///< the kernel's answer, 0 when there is none; not part of `message`
  std::optional<Origin> origin{};
  std::string source_line{};  ///< the text of the line at `origin`, for the caret
  std::string hint{};         ///< what would cure it
  Retry retry = Retry::none;

  /// "message: errno text (origin)", without the hint.
  [[nodiscard]] std::string text() const;
};

}  // namespace sbx
