#include "cli/cli.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/sys.hpp"
#include "base/text.hpp"
#include "cli/answer.hpp"
#include "cli/app.hpp"
#include "cli/changes_command.hpp"
#include "cli/complaint.hpp"
#include "cli/completions/complete.hpp"
#include "cli/completions/completions.hpp"
#include "cli/doctor_command.hpp"
#include "cli/guide.hpp"
#include "cli/help.hpp"
#include "cli/mcp_command.hpp"
#include "cli/mcp_install/command.hpp"
#include "cli/notebook/command.hpp"
#include "cli/policy/command.hpp"
#include "cli/run_command.hpp"
#include "cli/runs_command.hpp"
#include "cli/session_command.hpp"
#include "cli/session_eval.hpp"
#include "cli/session_start.hpp"
#include "cli/why_command.hpp"
#include "record/words.hpp"
#include "run/setup_errors.hpp"

namespace sbx::cli {
namespace {

Error usage_error(std::string message, std::string hint) {
  return {.kind = ErrorKind::usage,
          .code = "usage",
          .message = std::move(message),
          .hint = std::move(hint)};
}

Sheet sheet_for(const Invocation& typed) {
  constexpr std::size_t kNarrowest = 60;
  constexpr std::size_t kWidest = 100;
  return {.paint = paint_for(typed.output.color, STDOUT_FILENO),
          .width = std::clamp(terminal_columns(STDOUT_FILENO), kNarrowest, kWidest)};
}

int help_command(const Invocation& typed) {
  const std::string topic = fmt::format("{}", fmt::join(typed.operands, " "));
  const std::string text = help_text(describe_tree(), topic, sheet_for(typed));
  if (!text.empty()) return print(text);
  const std::string meant = similar_command(topic);
  return complain(typed,
                  usage_error(fmt::format("no help for \"{}\"", printable(topic)),
                              meant.empty() ? "\"sbx help\" lists the commands"
                                            : fmt::format("did you mean \"sbx help {}\"?", meant)));
}

int completions_command(const Invocation& typed) {
  const std::string shell = typed.operands.size() == 1 ? typed.operands.front() : "";
  const std::string_view text = completion_script(shell);
  if (text.empty())
    return complain(
        typed,
        usage_error(shell.empty() ? "\"sbx completions\" needs the name of a shell"
                                  : fmt::format("no completions for \"{}\"", printable(shell)),
                    "bash, zsh or fish"));
  return print(for_program(text, SBX_PROGRAM_NAME));
}

/// Options that mean nothing without --cells are refused there.
bool is_of_notebooks(const CellOptions& cell) {
  return !cell.notebook.empty() || cell.keep_going || !cell.parameters.empty();
}

int dispatch(const Invocation& typed, const Process& process) {
  if (typed.version) return print("sbx " SBX_VERSION "\n");
  if (typed.help) return print(help_text(describe_tree(), typed.command, sheet_for(typed)));
  if (typed.command.empty()) return print_fitted(std::string(kFirstSteps));
  if (typed.command == "run" && is_of_notebooks(typed.cell))
    return cells_command(typed, {.arguments = process.area, .started = process.started});
  if (typed.command == "run" && typed.session.empty() && !typed.request.directory.empty())
    return refuse_run(typed, usage_error("--cwd without --session has no effect",
                                         fmt::format("--workspace {}:overlay makes it the working "
                                                     "directory, copy-on-write",
                                                     shell_word(typed.request.directory))));
  if (typed.command == "run" && !typed.session.empty())
    return run_in_session(typed, {.arguments = process.area, .started = process.started});
  if (typed.command == "run")
    return run_command(typed, {.arguments = process.area, .started = process.started});
  if (typed.command == "help") return help_command(typed);
  if (typed.command == "completions") return completions_command(typed);
  if (typed.command == "mcp tools")
    return mcp_tools_command(typed, {.arguments = process.area, .started = process.started});
  if (typed.command == "mcp install") return mcp_install::install_command(typed);
  if (typed.command == "mcp remove") return mcp_install::remove_command(typed);
  if (typed.command == "mcp check") return mcp_install::check_command(typed);
  if (typed.command == "mcp")
    return mcp_command(typed, {.arguments = process.area, .started = process.started});
  if (typed.command == "doctor") return doctor_command(typed);
  if (typed.command == "ps" || typed.command == "stop") return runs_command(typed);
  if (typed.command == "why") return why_command(typed);
  if (typed.command.starts_with("changes ")) return changes_command(typed);
  if (typed.command.starts_with("session "))
    return session_command(typed, {.arguments = process.area, .started = process.started});
  return policy_command(typed);
}

}  // namespace

int main_of(const Process& process) {
  const auto arguments = process.arguments;
#ifdef SBX_FAULTS
  if (arguments.size() == 1 && std::string_view(arguments[0]) == "--list-stages")
    return print(run::stage_table());
#endif
  if (!arguments.empty() && std::string_view(arguments[0]) == "__complete")
    return print(completion::complete({arguments.begin() + 1, arguments.end()}));
  const auto typed = parse_command_line(arguments);
  if (typed) return dispatch(*typed, process);
  const Invocation known = salvage_output(arguments);
  if (is_run(arguments))
    return known.cell.is_notebook ? refuse_cells(known, typed.error())
                                  : refuse_run(known, typed.error());
  if (known.command == "session eval") return refuse_cell(known, typed.error());
  // It exits as a call did.
  const bool is_wait = known.command == "session wait";
  return complain(known, typed.error(), is_wait ? exit_status::kCouldNot : kUsage);
}

}  // namespace sbx::cli
