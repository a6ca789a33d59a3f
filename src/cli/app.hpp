#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/invocation.hpp"

/// The command line: a CLI11 tree, its only definition. CLI11 is included by app.cpp and nowhere
/// else.
namespace sbx::cli {

/// argv without its first element. Everything from the first operand of `run` on is kept byte for
/// byte. Errors: usage, with a suggestion where something near exists.
[[nodiscard]] Result<Invocation> parse_command_line(std::span<const char* const> arguments);

/// Where the record of a `run` whose command line is wrong should go: what is still readable of the
/// output options.
[[nodiscard]] Invocation salvage_output(std::span<const char* const> arguments);

/// The tree as plain data, for help, man pages and completions.
struct OptionDoc {
  std::string short_name;  ///< "-p", may be empty
  std::string long_name;   ///< "--policy", may be empty
  std::string value;       ///< "FILE", "none|host", "[GLOB]", empty for a switch
  std::string group;
  std::string text;
  std::vector<std::string> choices;  ///< when the value is one of a closed set
};
struct CommandDoc {
  std::string name;      ///< "run", "policy show", "" for the program itself
  std::string operands;  ///< for the synopsis
  std::string text;
  std::vector<OptionDoc> options;
};
[[nodiscard]] std::vector<CommandDoc> describe_tree();

/// True for `run`, whose mistakes exit with 125; those of other commands exit with 2.
[[nodiscard]] bool is_run(std::span<const char* const> arguments);

}  // namespace sbx::cli
