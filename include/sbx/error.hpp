#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// A failure before or around a run. Misbehaviour of the program is not an Error but a Verdict
/// (outcome.hpp).
namespace sbx {

/// The origin of a value, weakest layer first (sbx-policy(5), "Merge").
enum class Layer : std::uint8_t { key_default, builtin, file, command_line };

/// The position of a value: a file with line and column, or a command-line option. Lines and
/// columns count from 1; 0 means unknown.
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
  policy,          ///< the policy's contents
  host,            ///< this machine lacks something
  setup,           ///< a step of building the sandbox failed
  internal,        ///< a bug in sbx
  not_found,       ///< the command does not exist (exit 127)
  not_executable,  ///< the command can't be run (exit 126)
};

/// What a run can do instead after a failed set-up step, with an entry in `degraded`. Of use to sbx
/// itself only.
enum class Retry : std::uint8_t {
  none,                   ///< nothing
  with_copies,            ///< a writable overlay is impossible here
  disk_in_memory,         ///< the directory of the private disk can't hold whiteouts
  without_listener,       ///< a seccomp listener outside of sbx excludes another one (EBUSY)
  with_outer_proc,        ///< no procfs of the sandbox's own can be mounted (EPERM)
  keeps_host_name,        ///< the host name can't be set (EPERM)
  with_callers_uid,       ///< a uid of the program's own does not reach the command
  without_shared_memory,  ///< another run has the machine's /dev/shm, or it is not empty
  without_namespaces,     ///< this machine refuses namespaces, or what a sandbox needs in them
};

/// What stood in the way, for a program that reacts to it: from errno where the kernel said it.
enum class Obstacle : std::uint8_t {
  none,  ///< something else
  not_found,
  exists,
  is_directory,
  not_a_directory,
  not_permitted,
  no_space,
  too_large,
  time_out,
  no_session,
};

/// Where it stood.
enum class Side : std::uint8_t { host, sandbox };

struct Error {
  ErrorKind kind = ErrorKind::internal;
  std::string code;     ///< stable, kebab-case: "unknown-key", "no-user-namespace"
  std::string message;  ///< a sentence, lower case, no full stop
  int errno_value = 0;  ///< 0 if the kernel reported none; not part of `message`
  std::optional<Origin> origin{};
  std::string source_line{};  ///< the text of the line at `origin`, for the caret
  std::string hint{};         ///< how to fix it
  Retry retry = Retry::none;
  Obstacle obstacle = Obstacle::none;
  Side side = Side::host;

  /// "message: errno text (origin)", without the hint.
  [[nodiscard]] std::string text() const;
};

}  // namespace sbx
