#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sbx::plan {

/// Bytes of a program that are read for its first line.
inline constexpr std::size_t kHeadLimit = 4096;

/// The first line of a script, as execve(2) reads it.
struct Shebang {
  std::string interpreter;             ///< as written
  std::vector<std::string> arguments;  ///< at most one: the kernel does not split them
};

/// Empty if `head` does not begin with "#!" or names no interpreter.
[[nodiscard]] std::optional<Shebang> read_shebang(std::string_view head);

/// The command that env(1) would run for that line: a name and its arguments. Empty if env has more
/// to do (variables, options other than -S): then env itself must run inside.
[[nodiscard]] std::optional<std::vector<std::string>> env_command(const Shebang& shebang);

/// "#!/usr/bin/env" or "#!/usr/bin/env -S".
[[nodiscard]] bool is_env_alone(const Shebang& shebang);

[[nodiscard]] inline bool is_elf(std::string_view head) {
  return head.starts_with(
      "\x7f"
      "ELF");
}

}  // namespace sbx::plan
