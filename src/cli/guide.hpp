#pragma once

#include <span>
#include <string_view>

/// What help says of a command beside its options.
namespace sbx::cli {

/// Where "sbx help" lists it. The order is that of the list.
struct HelpGroup {
  const char* title;
  std::span<const char* const> commands;
};

struct Guide {
  const char* command;
  /// Whole shell commands. A test runs each of them.
  std::span<const char* const> examples;
  const char* statuses;  ///< a part of one line for each exit status
};

[[nodiscard]] std::span<const HelpGroup> help_groups();

/// Null if there is no such command.
[[nodiscard]] const Guide* guide_of(std::string_view command);

/// What "sbx" alone prints: the commands that matter and how to go on.
inline constexpr std::string_view kFirstSteps =
    "sbx runs programs that you do not trust, and says how each run ended.\n"
    "\n"
    "  sbx run script.py        run a script or a command in a sandbox: it sees no\n"
    "                           file of yours and no network.\n"
    "                             sbx run -p python --diff script.py\n"
    "                           shows it this directory, and you what it would change\n"
    "  sbx session start work   keep a sandbox for many calls:\n"
    "                             sbx session exec work -- make test\n"
    "                             sbx session eval work -c 'x = 6'\n"
    "  sbx changes list         see what runs with --keep changed, and apply it\n"
    "  sbx policy list          list the policies that have a name\n"
    "  sbx doctor               check what this machine can enforce\n"
    "\n"
    "\"sbx help\" lists all commands; \"sbx help run\" explains one, with examples.\n";

}  // namespace sbx::cli
