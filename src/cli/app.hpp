#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/invocation.hpp"

/// Parses the command line. CLI11 is included only by app.cpp.
namespace sbx::cli {

/// Takes argv without its first element. Keeps everything from the first operand of `run` on byte
/// for byte. Errors: usage, with a suggestion if a similar name exists.
[[nodiscard]] Result<Invocation> parse_command_line(std::span<const char* const> arguments);

/// The command or family of commands whose name is nearest to a mistyped one; empty if none is.
[[nodiscard]] std::string similar_command(const std::string& typed);

/// For a command that writes a record, with an invalid command line: the readable output options,
/// so that the record reaches its destination.
[[nodiscard]] Invocation salvage_output(std::span<const char* const> arguments);

/// The tree as plain data, for help and man pages.
struct OptionDoc {
  std::string short_name;  ///< "-p", may be empty
  std::string long_name;   ///< "--policy", may be empty
  std::string value;       ///< "FILE", "none|host", "[GLOB]", empty for a switch
  std::string group;
  std::string text;
  std::vector<std::string> choices;  ///< if the value is one of a closed set
};
struct CommandDoc {
  std::string name;      ///< "run", "policy show", "" for the program itself
  std::string operands;  ///< for the synopsis
  std::string text;
  std::vector<OptionDoc> options;
};
[[nodiscard]] std::vector<CommandDoc> describe_tree();

/// True for `run`: its usage errors exit with 125, those of other commands with 2.
[[nodiscard]] bool is_run(std::span<const char* const> arguments);

}  // namespace sbx::cli
