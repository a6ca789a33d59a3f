#include "cli/commands.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "cli/options.hpp"
#include "cli/take.hpp"

/// Every command. options.cpp has the options of `run`. The rows of other commands are made on
/// demand, so that a run doesn't pay for them.
namespace sbx::cli {
namespace {

constexpr const char* kOptions = "Options";
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

Status take_context(Invocation& typed, std::string_view value) {
  if (value.empty())
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "bad-value",
                      .message = "--context needs the name of a context",
                      .hint = "for example --context second; without it the language's first one"});
  typed.cell.context = std::string(value);
  return {};
}
Status take_results(Invocation& typed, std::string_view value) {
  if (value.empty())
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "bad-value",
                      .message = "--results needs a directory",
                      .hint = "for example --results pictures"});
  typed.cell.results = std::string(value);
  return {};
}

Status take_max_text(Invocation& typed, std::string_view value) {
  constexpr std::size_t kLeast = 1'000;
  constexpr std::size_t kMost = 1'000'000;
  const auto [end, error] =
      std::from_chars(value.data(), value.data() + value.size(), typed.mcp.max_text);
  const bool is_number = error == std::errc{} && end == value.data() + value.size();
  if (is_number && typed.mcp.max_text >= kLeast && typed.mcp.max_text <= kMost) return {};
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "bad-value",
                    .message = "--max-text needs a number from 1000 to 1000000",
                    .hint = "for example --max-text 50000"});
}

Status take_log(Invocation& typed, std::string_view value) {
  typed.mcp.log = std::string(value);
  if (!value.empty()) return {};
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "bad-value",
                    .message = "--log needs a file",
                    .hint = "for example --log ~/mcp.log"});
}

Result<std::uint64_t> whole(std::string_view value, const char* option, const char* example) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error == std::errc{} && end == value.data() + value.size() && number <= INT64_MAX)
    return number;
  return fail(Error{
      .kind = ErrorKind::usage,
      .code = "bad-value",
      .message = std::string(option) + " needs a whole number, got \"" + printable(value) + "\"",
      .hint = example});
}
Status take_as(Invocation& typed, std::string_view value) {
  if (value.empty())
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "bad-value",
                      .message = "--as needs a file, or - for standard output",
                      .hint = "for example --as chart.png"});
  typed.file.as = std::string(value);
  return {};
}
Status take_offset(Invocation& typed, std::string_view value) {
  typed.file.offset = SBX_TRY(whole(value, "--offset", "bytes, for example --offset 4096"));
  return {};
}
Status take_limit(Invocation& typed, std::string_view value) {
  typed.file.limit = SBX_TRY(whole(value, "--limit", "bytes, for example --limit 20000"));
  if (typed.file.limit > 0) return {};
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "bad-value",
                    .message = "--limit needs at least one byte",
                    .hint = "without it the file is read to its end"});
}
Status take_depth(Invocation& typed, std::string_view value) {
  constexpr std::uint64_t kDeepest = 1000;
  typed.file.depth = SBX_TRY(whole(value, "--depth", "for example --depth 2"));
  if (typed.file.depth > 0 && typed.file.depth <= kDeepest) return {};
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "bad-value",
                    .message = "--depth is from 1 to 1000",
                    .hint = "1 lists what is in the directory itself"});
}

/// A row of `run` that another command shares.
OptionRow of_run(std::string_view name) {
  for (const OptionRow& row : run_options()) {
    const std::string_view names = row.names;
    if (names == name || names.ends_with("," + std::string(name))) return row;
  }
  return {};
}

/// The same, in the single option group of small commands.
OptionRow shared(std::string_view name, const char* text = nullptr) {
  OptionRow row = of_run(name);
  row.group = kOptions;
  if (text != nullptr) row.text = text;
  return row;
}

/// --env of what runs in a session, which has its variables of the caller since its start.
OptionRow env_of_session(OptionRow row, const char* text) {
  row.value = "NAME=VALUE";
  row.text = text;
  return row;
}

using Rows = std::vector<OptionRow>;

Rows with_usual(Rows rows) {
  rows.push_back(shared("--color"));
  rows.push_back(shared("--help"));
  return rows;
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

Rows rows_of_run(std::initializer_list<const char*> names) {
  Rows list;
  for (const char* name : names) list.push_back(of_run(name));
  return list;
}

OptionRow dies_with_parent(const char* text) {
  return shared("--die-with-parent", text);
}

std::span<const OptionRow> start_options() {
  static const Rows rows = [] {
    Rows list = rows_of_run(
        {"--policy", "--set",      "--isolation", "--require", "--timeout", "--cpu-time",
         "--cpus",   "--memory",   "--processes", "--disk",    "--output",  "--workspace",
         "--read",   "--write",    "--in",        "--venv",    "--net",     "--allow-host",
         "--env",    "--env-file", "--env-fd"});
    list.push_back(dies_with_parent(
        "Stop the session when the process that started sbx ends. In NAME=$(sbx session start) "
        "that is a subshell, which ends at once."));
    list.push_back(shared("--json", "Print the session's name, process and end as JSON."));
    list.push_back(shared("--quiet", "Print nothing but errors."));
    list.push_back(of_run("--verbose"));
    return with_usual(std::move(list));
  }();
  return rows;
}

std::span<const OptionRow> mcp_options() {
  static const Rows rows = [] {
    Rows list;
    for (const OptionRow& row : start_options())
      if (row.names != std::string_view("--json") && row.names != std::string_view("-q,--quiet") &&
          row.names != std::string_view("-v,--verbose") &&
          row.names != std::string_view("--die-with-parent"))
        list.push_back(row);
    list.front() = shared(
        "--policy", "The policy of the sandbox: a built-in's name or a file. Without it: agent.");
    Rows own{
        shared("--session",
               "Use the session of this name, and start it where it does not live. It outlives "
               "the server."),
        {"--shared-context", "", kOptions, kOnce,
         "Cells without a context_id share one interpreter for each language. For a client with "
         "one conversation for each server.",
         sets<&Invocation::mcp, &McpOptions::shares_contexts>},
        {"--allow-apply", "", kOptions, kOnce,
         "Offer the tool apply_changes: the model itself writes files that it names to the "
         "directory on the host. Protected names and conflicts are refused.",
         sets<&Invocation::mcp, &McpOptions::allows_apply>},
        {"--structured", "", kOptions, kOnce,
         "Give the record as structured content too. For programs: some clients then hide text and "
         "pictures from the model.",
         sets<&Invocation::mcp, &McpOptions::is_structured>},
        {"--max-text", "COUNT", kOptions, kOnce,
         "The most characters of a program's output in one answer, 1000 to 1000000. Without it: "
         "20000.",
         take_max_text},
        {"--log", "FILE", kOptions, kOnce,
         "Append a line of JSON for each call to FILE, which only the user can read: when, what, "
         "and "
         "how it ended, without what programs wrote.",
         take_log}};
    list.insert(list.begin() + 1, own.begin(), own.end());
    return list;
  }();
  return rows;
}

std::span<const OptionRow> mcp_tools_options() {
  static const Rows rows = [] {
    Rows list;
    for (const OptionRow& row : mcp_options())
      if (row.names != std::string_view("--session") && row.names != std::string_view("--log"))
        list.push_back(row);
    list.insert(list.begin(), OptionRow{"--sha256", "", kOptions, kOnce,
                                        "Print the SHA-256 of what is printed without it.",
                                        sets<&Invocation::mcp, &McpOptions::hashes>});
    return list;
  }();
  return rows;
}

Status take_scope(Invocation& typed, std::string_view value) {
  typed.install.for_project = value == "project";
  return {};
}
Status take_server_name(Invocation& typed, std::string_view value) {
  typed.install.name = std::string(value);
  return {};
}

Rows rows_of_registering(const char* replace_shell) {
  Rows list = {{"--scope", "user|project", kOptions, kOnce,
                "Whose settings: those of the user, or those in the current directory. Without it: "
                "user.",
                take_scope},
               {"--name", "NAME", kOptions, kOnce,
                "What the client calls the server. Without it: sbx.", take_server_name}};
  if (*replace_shell != '\0')
    list.push_back({"--replace-shell", "", kOptions, kOnce, replace_shell,
                    sets<&Invocation::install, &McpInstallOptions::replaces_shell>});
  return list;
}

std::span<const OptionRow> mcp_install_options() {
  static const Rows rows = [] {
    Rows list = rows_of_registering(
        "Deny the client's own shell too, and let run_command work on the same files: with "
        "--workspace .:read-write, where no workspace is named after --.");
    list.push_back({"--print", "", kOptions, kOnce,
                    "Print the files and what they must say, and change nothing. Without CLIENT: "
                    "for any other client.",
                    sets<&Invocation::install, &McpInstallOptions::prints>});
    return with_usual(std::move(list));
  }();
  return rows;
}

std::span<const OptionRow> mcp_remove_options() {
  static const Rows rows =
      with_usual(rows_of_registering("Give the client its own shell back too."));
  return rows;
}

std::span<const OptionRow> mcp_check_options() {
  static const Rows rows = [] {
    Rows list = rows_of_registering("");
    list.push_back(shared("--yes", "With --scope project, start what the project's file names."));
    return with_usual(std::move(list));
  }();
  return rows;
}

std::span<const OptionRow> exec_options() {
  static const Rows rows = [] {
    Rows list =
        rows_of_run({"--lang",      "-c",          "--cwd",         "--set",   "--require",
                     "--timeout",   "--cpu-time",  "--output",      "--env",   "--env-file",
                     "--env-fd",    "--stdin",     "--interactive", "--json",  "--report",
                     "--report-fd", "--events-fd", "--explain",     "--quiet", "--verbose"});
    for (OptionRow& row : list)
      if (row.names == std::string_view("--env"))
        row = env_of_session(row,
                             "Set a variable for this call alone (visible in ps: see "
                             "--env-fd).");
    const auto in = std::ranges::find(list, std::string_view("--stdin"), &OptionRow::names);
    in->value = kStdinOfCall;
    in->text =
        "What the program reads on standard input. open: with --detach, what sbx session send "
        "gives it.";
    list.push_back(dies_with_parent("Cancel the call when the process that started sbx ends."));
    list.push_back({"-d,--detach", "", kOptions, kOnce,
                    "Run it in the background and print the number of the call.",
                    sets<&Invocation::detach>});
    return with_usual(std::move(list));
  }();
  return rows;
}

std::span<const OptionRow> eval_options() {
  static const Rows rows = with_usual(
      {{"--lang", "NAME", kOptions, kOnce,
        "The language: python, javascript, r or bash. Without it that of the file's extension, or "
        "of "
        "--context, or python.",
        of_run("--lang").take},
       {"--context", "NAME", kOptions, kOnce,
        "Which interpreter: each keeps a state of its own. Without it the one that is named as the "
        "language.",
        take_context},
       {"-c", "CODE", kOptions, Repeat::one_value, "The cell itself, instead of a file.",
        of_run("-c").take},
       shared(
           "--cwd",
           "Begin in DIR, a directory inside, for this cell alone: afterwards the interpreter is "
           "where it was before."),
       env_of_session(shared("--env"), "Set a variable of the environment for this cell alone."),
       shared("--env-file",
              "Set variables from lines NAME=VALUE for this cell alone; empty lines and lines that "
              "begin with # are skipped."),
       shared("--env-fd", "Like --env-file, from the open descriptor N."),
       {"-i,--interactive", "", kOptions, kOnce,
        "Read cells from the terminal, with line editing, history and completion, until Ctrl-D.",
        of_run("--interactive").take},
       shared("--timeout",
              "Wall time of the cell: limits.wall_time, which it may only shorten. The interpreter "
              "is interrupted, "
              "and killed 2 s later where it does not answer."),
       shared("--output"),
       shared("--json", "Print the record only, with the cell's output in it. See sbx-record(5)."),
       {"--stream", "", kOptions, kOnce,
        "Print what happens while it happens, one JSON object a line; the last has the record.",
        sets<&Invocation::cell, &CellOptions::stream>},
       {"--results", "DIR", kOptions, kOnce,
        "Write each value that is more than plain text to a file in DIR, and name it.",
        take_results},
       dies_with_parent("Cancel the cell when the process that started sbx ends."),
       shared("--quiet", "Print no messages of sbx's own but errors.")});
  return rows;
}

std::span<const OptionRow> context_options() {
  static const Rows rows = with_usual(
      {{"--lang", "NAME", kOptions, kOnce,
        "The language: python, javascript, r or bash. Without it python.", of_run("--lang").take},
       shared("--cwd", "Begin in DIR, a directory inside."),
       shared("--json", "Print the answer as JSON.")});
  return rows;
}

std::span<const OptionRow> logs_options() {
  static const Rows rows =
      with_usual({{"-f,--follow", "", kOptions, kOnce, "Go on printing until the call has ended.",
                   sets<&Invocation::follow>},
                  shared("--json", "Print what is there by now as JSON.")});
  return rows;
}

std::span<const OptionRow> send_options() {
  static const Rows rows = with_usual(
      {{"--end", "", kOptions, kOnce,
        "Nothing comes after it: the program meets the end of its input.", sets<&Invocation::end>},
       shared("--json", "Print the answer as JSON.")});
  return rows;
}

std::span<const OptionRow> wait_options() {
  static const Rows rows = with_usual({shared("--json", "Print the call's record on stdout.")});
  return rows;
}

std::span<const OptionRow> put_options() {
  static const Rows rows = with_usual({shared("--json", "Print the answer as JSON."),
                                       shared("--quiet", "Print nothing but errors.")});
  return rows;
}

std::span<const OptionRow> get_options() {
  static const Rows rows = with_usual(
      {shared("--out", "The directory to copy to; without it the current one."),
       {"--as", "FILE|-", kOptions, kOnce,
        "Copy one file to FILE, or to standard output, instead of to a directory.", take_as},
       {"--offset", "BYTES", kOptions, kOnce,
        "With --as, begin so far from the beginning of the file.", take_offset},
       {"--limit", "BYTES", kOptions, kOnce, "With --as, copy at most so many bytes.", take_limit},
       shared("--json", "Print the answer as JSON."),
       shared("--quiet", "Print nothing but errors.")});
  return rows;
}

std::span<const OptionRow> ls_options() {
  static const Rows rows =
      with_usual({{"--depth", "NUMBER", kOptions, kOnce,
                   "List directories below too, so many levels in all. Without it 1.", take_depth},
                  shared("--json", "Print the answer as JSON.")});
  return rows;
}

std::span<const OptionRow> rm_options() {
  static const Rows rows =
      with_usual({{"-r,--recursive", "", kOptions, kOnce, "Remove a directory and what is in it.",
                   sets<&Invocation::file, &FileOptions::recursive>},
                  shared("--json", "Print the answer as JSON.")});
  return rows;
}

std::span<const OptionRow> session_stop_options() {
  static const Rows rows = with_usual(
      {{"--all", "", kOptions, kOnce, "Stop all of them.", sets<&Invocation::all>},
       shared("--keep", "Keep what the session has changed under a name: see sbx-changes(1)."),
       shared("--json", "Print the answer as JSON.")});
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
