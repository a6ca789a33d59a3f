#include "cli/session_options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "cli/option_rows.hpp"
#include "cli/take.hpp"

namespace sbx::cli {
namespace {

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
  SBX_TRY(check_home(value, "--results"));
  typed.cell.results = std::string(value);
  return {};
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
  SBX_TRY(check_home(value, "--as"));
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

}  // namespace

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

}  // namespace sbx::cli
