#include "cli/commands.hpp"

#include <string>

#include "cli/mcp_options.hpp"
#include "cli/option_rows.hpp"
#include "cli/session_options.hpp"
#include "cli/take.hpp"

/// Every command. options.cpp has the options of `run`. The rows of other commands are made on
/// demand, so that a run doesn't pay for them.
namespace sbx::cli {
namespace {

constexpr auto kWorks = Standing::works;
constexpr auto kReserved = Standing::reserved;

Status take_format(Invocation& typed, std::string_view value) {
  typed.format = std::string(value);
  return {};
}
Status take_name(Invocation& typed, std::string_view value) {
  if (value.empty())
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "bad-value",
                      .message = "--name needs a name",
                      .hint = "for example --name reports"});
  typed.name = std::string(value);
  return {};
}

std::span<const OptionRow> top_options() {
  static const Rows rows = {
      {"-V,--version", "", kOptions, kOnce, "Print the version.", sets<&Invocation::version>},
      shared("--help")};
  return rows;
}

std::span<const OptionRow> plain_options() {
  static const Rows rows = with_usual({});
  return rows;
}

std::span<const OptionRow> show_options() {
  static const Rows rows = with_usual(
      {{"--effective", "", kOptions, kOnce,
        "Print every key with the value it has after all layers, not the file.",
        sets<&Invocation::effective>},
       {"--origin", "", kOptions, kOnce, "The same, each value with the file and line that set it.",
        sets<&Invocation::origin>},
       shared("--json", "Print every key with value and origin as JSON."),
       shared("--set", "Show it as --set KEY=TOML would make it.")});
  return rows;
}

std::span<const OptionRow> options_of_check() {
  static const Rows rows = with_usual(
      {{"--format", "human|json|github|sarif", kOptions, kOnce,
        "For people, for programs, as annotations of a GitHub workflow, or as SARIF 2.1.0.",
        take_format}});
  return rows;
}

std::span<const OptionRow> json_options() {
  static const Rows rows = with_usual({shared("--json", "Print the answer as JSON.")});
  return rows;
}

std::span<const OptionRow> init_options() {
  static const Rows rows = [] {
    Rows list = {{"--name", "NAME", kOptions, kOnce, "What the policy is called.", take_name},
                 shared("--policy",
                        "The policy to start from: a built-in's name or a file. Without it: "
                        "default.")};
    for (const char* name : {"--set", "--timeout", "--cpu-time", "--cpus", "--memory",
                             "--processes", "--disk", "--output", "--workspace", "--read",
                             "--write", "--venv", "--net", "--allow-host", "--env"})
      list.push_back(shared(name));
    return with_usual(std::move(list));
  }();
  return rows;
}

std::span<const OptionRow> doctor_options() {
  static const Rows rows =
      with_usual({shared("--policy", "Say whether this policy can run here. May be repeated."),
                  shared("--json", "Print the answer as JSON."),
                  shared("--quiet", "Print only what is weaker or missing.")});
  return rows;
}

std::span<const OptionRow> diff_options() {
  static const Rows rows = with_usual({{"--patch", "", kOptions, kOnce,
                                        "Print a patch that \"git apply\" takes. What it can't "
                                        "hold, such as binary files, is named "
                                        "on stderr.",
                                        sets<&Invocation::patch>}});
  return rows;
}

std::span<const OptionRow> session_diff_options() {
  static const Rows rows = [] {
    Rows list(diff_options().begin(), diff_options().end());
    list.insert(list.begin() + 1, shared("--json", "Print the answer as JSON."));
    return list;
  }();
  return rows;
}

std::span<const OptionRow> apply_options() {
  static const Rows rows = with_usual({shared("--yes", "Apply without asking."),
                                       shared("--json", "Print the answer as JSON."),
                                       shared("--quiet", "Print nothing but errors.")});
  return rows;
}

std::span<const OptionRow> keep_options() {
  static const Rows rows = with_usual({shared("--json", "Print the answer as JSON."),
                                       shared("--quiet", "Print nothing but errors.")});
  return rows;
}

std::span<const OptionRow> stop_options() {
  static const Rows rows =
      with_usual({{"--all", "", kOptions, kOnce, "Stop all of them.", sets<&Invocation::all>}});
  return rows;
}

std::span<const OptionRow> no_options() {
  return {};
}

constexpr CommandRow kCommands[] = {
    {"", "COMMAND", "Run an untrusted program under a policy.", kWorks, top_options},
    {"run", "SCRIPT|COMMAND [ARGS...]", "Run a script or a command in a sandbox.", kWorks,
     run_options, 0},
    {"policy list", "", "List the policies that have a name.", kWorks, plain_options},
    {"policy show", "POLICY", "Print a policy.", kWorks, show_options},
    {"policy check", "FILE...", "Report every mistake of policy files.", kWorks, options_of_check},
    {"policy explain", "KEY|@GROUP|CODE|TERM",
     "Explain a policy key, a group of system calls, the code of an error, a word of a record, or "
     "an exit status.",
     kWorks, plain_options},
    {"policy diff", "POLICY POLICY",
     "Compare two policies: what the second widens, narrows or changes otherwise.", kWorks,
     json_options},
    {"policy schema", "", "Print the JSON Schema of policies, for editors.", kWorks, plain_options},
    {"policy init", "", "Print a commented first policy, made from options of run.", kWorks,
     init_options},
    {"policy audit", "POLICY", "Grade what a policy leaves open.", kWorks, json_options},
    {"doctor", "", "Check what this machine can enforce and how to fix what it can't.", kWorks,
     doctor_options},
    {"why", "[FILE]",
     "Explain a record: how the run ended, what was refused, what would allow it. \"-\" is "
     "standard "
     "input; without FILE the kept record is read.",
     kWorks, plain_options},
    {"ps", "", "List the runs of this user that are under way.", kWorks, json_options},
    {"stop", "ID...",
     "Stop runs, as SIGTERM does: the program gets the signal, and 2 s later all of it ends.",
     kWorks, stop_options},
    {"session start", "[NAME]",
     "Start a session: a sandbox that stays, for any number of calls. Prints its name.", kWorks,
     start_options},
    {"session exec", "NAME SCRIPT|COMMAND [ARGS...]",
     "Run a script or a command in a session, as sbx run does in a sandbox of its own.", kWorks,
     exec_options, 1},
    {"session eval", "NAME [FILE]",
     "Run a cell, the code of FILE or of standard input, in an interpreter of the session that "
     "keeps its state.",
     kWorks, eval_options},
    {"session context", "NAME",
     "Start an interpreter of a session that keeps its state, and print the name of its context.",
     kWorks, context_options},
    {"session close", "NAME CONTEXT", "End the interpreter of a context and forget the context.",
     kWorks, json_options},
    {"session contexts", "NAME", "List the interpreters of a session that keep their state.",
     kWorks, json_options},
    {"session interrupt", "NAME [CONTEXT]",
     "Interrupt the cell that runs in a context, as Ctrl-C at its client does; without CONTEXT in "
     "all.",
     kWorks, json_options},
    {"session restart", "NAME [CONTEXT]",
     "End the interpreter of a context; the next cell starts another one. Without CONTEXT all.",
     kWorks, json_options},
    {"session calls", "NAME", "List the calls of a session that run, and the last that ended.",
     kWorks, json_options},
    {"session logs", "NAME CALL", "Print what a background call wrote.", kWorks, logs_options},
    {"session wait", "NAME CALL", "Wait for a background call and exit with its status.", kWorks,
     wait_options},
    {"session kill", "NAME CALL [SIGNAL]",
     "Cancel a call, as SIGTERM to sbx run does, or send a signal to its command.", kWorks,
     json_options},
    {"session send", "NAME CALL [TEXT|-]",
     "Send a line, or standard input byte for byte, to a background call that was begun with "
     "--stdin open.",
     kWorks, send_options},
    {"session put", "NAME FILE...|- [TARGET]",
     "Copy files and directories of the host into a session, or standard input to the file TARGET.",
     kWorks, put_options},
    {"session get", "NAME PATH...", "Copy files and directories of a session to the host.", kWorks,
     get_options},
    {"session ls", "NAME [PATH]", "List a directory of a session.", kWorks, ls_options},
    {"session stat", "NAME PATH", "Print the type, size and mode of a file of a session.", kWorks,
     json_options},
    {"session mkdir", "NAME PATH",
     "Make a directory in a session, and those above it that are missing.", kWorks, json_options},
    {"session mv", "NAME PATH TARGET", "Give a file or directory of a session another name.",
     kWorks, json_options},
    {"session rm", "NAME PATH", "Remove a file of a session, or with -r a directory.", kWorks,
     rm_options},
    {"session changes", "NAME", "List what a session has changed in its workspace.", kWorks,
     json_options},
    {"session diff", "NAME", "Show what a session has changed, texts line by line.", kWorks,
     session_diff_options},
    {"session apply", "NAME [GLOB...]",
     "Apply what a session has changed, only what matches GLOB if given, to the directory on the "
     "host.",
     kWorks, apply_options},
    {"session keep", "NAME SET", "Keep what a session has changed as a change set.", kWorks,
     keep_options},
    {"session list", "", "List the sessions of this user.", kWorks, json_options},
    {"session show", "NAME", "Print a session's policy, process and end.", kWorks, json_options},
    {"session stats", "NAME", "Print what a session uses of its budgets.", kWorks, json_options},
    {"session extend", "NAME TIME", "Let a session live for TIME from now.", kWorks, json_options},
    {"session stop", "NAME...", "End sessions and everything in them.", kWorks,
     session_stop_options},
    {"mcp", "",
     "Serve an agent that speaks the Model Context Protocol on standard input and output: it runs "
     "code and commands in a session under this policy.",
     kWorks, mcp_options},
    {"mcp tools", "", "Print the tools that sbx mcp offers under these options, one line of JSON.",
     kWorks, mcp_tools_options},
    {.name = "mcp install",
     .operands = "[CLIENT] [-- OPTIONS...]",
     .text = "Register sbx mcp, with these options of it, with a client: claude, codex, gemini, "
             "opencode, cursor or vscode.",
     .standing = kWorks,
     .options = mcp_install_options,
     .passes_on_to = "mcp"},
    {"mcp remove", "CLIENT", "Take out of a client's settings what sbx mcp install wrote.", kWorks,
     mcp_remove_options},
    {"mcp check", "CLIENT",
     "Start the server as the settings of a client say, let it run 1+1, and say whether the "
     "client's own shell is denied.",
     kWorks, mcp_check_options},
    {"changes list", "", "List the change sets that --keep has kept.", kWorks, json_options},
    {"changes show", "SET", "List the changes of a set.", kWorks, json_options},
    {"changes diff", "SET", "Show the changes of a set, texts line by line.", kWorks, diff_options},
    {"changes apply", "SET [GLOB...]",
     "Apply the changes of a set, only those that match GLOB if given, to the directory they were "
     "made in.",
     kWorks, apply_options},
    {"changes drop", "SET...", "Remove change sets.", kWorks, plain_options},
    {"completions", "bash|zsh|fish", "Print a completion script for a shell.", kWorks,
     plain_options},
    {"help", "[COMMAND]", "Print the help of a command.", kWorks, plain_options},
    {"learn", "", "", kReserved, no_options},
    {"batch", "", "", kReserved, no_options},
    {"report", "", "", kReserved, no_options},
    {"test", "", "", kReserved, no_options},
    {"serve", "", "", kReserved, no_options},
};

}  // namespace

std::span<const CommandRow> commands() {
  return kCommands;
}

}  // namespace sbx::cli
