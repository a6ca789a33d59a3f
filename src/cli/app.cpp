#include "cli/app.hpp"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/habits.hpp"
#include "cli/options.hpp"
#include "cli/split.hpp"
#include "cli/usage.hpp"
#include "policy/keys.hpp"

namespace sbx::cli {
namespace {

void add_option(CLI::App& app, const OptionRow& row) {
  const std::string_view value = row.value;
  CLI::Option* option = nullptr;
  if (value.empty()) {
    option = app.add_flag(row.names, row.text);
  } else {
    option = app.add_option(row.names, CLI::callback_t(), row.text);
    option->type_name(row.value);
    if (value.starts_with('[')) option->expected(0, 1);
  }
  option->group(row.group);
  // The raw results are read below, so CLI11 must not reduce or split them: "[a,b]" stays one
  // value.
  option->allow_extra_args(false);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

/// The words of a closed choice, lower case and separated by bars: "none|host", but not
/// "inherit|null|FILE".
std::vector<std::string> choices_of(std::string_view value) {
  std::vector<std::string> choices;
  const bool closed = value.find('|') != std::string_view::npos &&
                      std::none_of(value.begin(), value.end(), [](char c) {
                        return (c >= 'A' && c <= 'Z') || c == '[' || c == ':';
                      });
  if (!closed) return choices;
  while (true) {
    const auto bar = value.find('|');
    choices.emplace_back(value.substr(0, bar));
    if (bar == std::string_view::npos) return choices;
    value.remove_prefix(bar + 1);
  }
}

Status check_choice(const OptionRow& row, std::string_view value) {
  const std::vector<std::string> choices = choices_of(row.value);
  if (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end())
    return {};
  const std::vector<std::string_view> views(choices.begin(), choices.end());
  const std::string_view meant = policy::nearest(value, views);
  return usage("bad-value", fmt::format("{}: unknown value \"{}\"", row.names, value),
               meant.empty() ? fmt::format("one of {}", fmt::join(choices, ", "))
                             : fmt::format("did you mean \"{}\"?", meant));
}

/// The name by which CLI11 finds a row's option.
std::string lookup_name(const OptionRow& row) {
  const std::string_view names = row.names;
  return std::string(
      names.substr(names.find(',') == std::string_view::npos ? 0 : names.find(',') + 1));
}

/// Errors: two different values.
Status check_repeated(const OptionRow& row, const std::vector<std::string>& values) {
  constexpr std::size_t kShown = 100;
  const auto shown = [](const std::string& value) { return shortened(printable(value), kShown); };
  if (row.repeat != Repeat::one_value) return {};
  const auto other = std::ranges::find_if(
      values, [&values](const std::string& value) { return value != values.front(); });
  if (other == values.end()) return {};
  const std::string_view names = row.names;
  return usage("usage",
               fmt::format("{} is given twice: \"{}\" and \"{}\"", names, shown(values.front()),
                           shown(*other)),
               names == "-c" ? "-c takes the whole program: join the two with a line break between "
                               "them, or give each a command of its own"
                             : "each needs a command of its own");
}

Status take_result(const CLI::App& app, const OptionRow& row, Invocation& typed) {
  const CLI::Option* option = app.get_option_no_throw(lookup_name(row));
  if (option == nullptr || option->count() == 0) return {};
  const std::vector<std::string>& values = option->results();
  SBX_TRY(check_repeated(row, values));
  // For a scalar given twice the last value counts, so that a wrapper's options can be overridden.
  const std::size_t first = row.repeat == Repeat::last_wins ? values.size() - 1 : 0;
  for (std::size_t i = first; i < values.size(); ++i) {
    SBX_TRY(check_choice(row, values[i]));
    SBX_TRY(row.take(typed, values[i]));
  }
  return {};
}

/// `--apply '*.csv' python3 a.py`: its pattern would be run.
Status check_apply(const Invocation& typed) {
  const std::vector<std::string>& words = typed.request.operands;
  if (!typed.bring_out.apply || !typed.bring_out.patterns.empty() || words.empty()) return {};
  const std::string& word = words.front();
  if (typed.request.after_dashes || word.find_first_of("*?[") == std::string::npos) return {};
  return usage("bad-value", fmt::format("\"{}\" stands where the command belongs", printable(word)),
               fmt::format("a pattern of --apply follows \"=\": --apply={}", shell_word(word)));
}

Status take_operands(const CommandRow& row, Split& split, Invocation& typed) {
  if (*row.passes_on_to != '\0' && split.after_dashes) {
    const auto passed = split.operands.begin() + static_cast<std::ptrdiff_t>(split.before_dashes);
    typed.install.passed_on.assign(passed, split.operands.end());
    split.operands.erase(passed, split.operands.end());
  }
  if (row.before_program < 0) {
    typed.operands = std::move(split.operands);
    if (std::string_view(row.name) == "session eval" && typed.operands.empty() && !typed.help)
      return usage("usage", "\"sbx session eval\" needs the name of a session",
                   "sbx session list names them");
    return {};
  }
  const auto own = std::min(split.operands.size(), static_cast<std::size_t>(row.before_program));
  const auto program = split.operands.begin() + static_cast<std::ptrdiff_t>(own);
  typed.operands.assign(split.operands.begin(), program);
  plan::RunRequest& request = typed.request;
  request.operands.assign(program, split.operands.end());
  request.after_dashes = split.after_dashes;
  SBX_TRY(check_apply(typed));
  if (request.code || !typed.cell.notebook.empty()) return {};
  if (!request.after_dashes && !request.operands.empty() && request.operands.front() == "-") {
    request.code_from_stdin = true;
    request.operands.erase(request.operands.begin());
    return {};
  }
  if (request.operands.empty() && !typed.help)
    return usage(
        "nothing-to-run", "nothing to run",
        row.before_program == 0
            ? "name a script or a command, for example: sbx run script.py"
            : "name a session and a command, for example: sbx session exec work make test");
  return {};
}

struct Chosen {
  const CommandRow* row = nullptr;
  std::size_t words = 0;  ///< number of words in argv that name it
};

Chosen choose(std::span<const char* const> arguments) {
  Chosen chosen;
  for (const CommandRow& row : commands()) {
    std::string_view name = row.name;
    std::size_t words = 0;
    bool same = !name.empty();
    while (same && !name.empty()) {
      const auto space = name.find(' ');
      same = words < arguments.size() && name.substr(0, space) == arguments[words];
      ++words;
      name = space == std::string_view::npos ? std::string_view{} : name.substr(space + 1);
    }
    if (same && words > chosen.words) chosen = {&row, words};
  }
  return chosen;
}

/// "list, show": the second words of commands that begin with "policy ".
std::string below(std::string_view word) {
  std::string names;
  for (const CommandRow& row : commands()) {
    const std::string_view name = row.name;
    if (row.standing != Standing::works || !name.starts_with(word) ||
        !name.substr(word.size()).starts_with(' '))
      continue;
    names += (names.empty() ? "" : ", ") + std::string(name.substr(word.size() + 1));
  }
  return names;
}

/// The words that should have named a command.
std::string words_of(std::span<const char* const> arguments) {
  std::string words = arguments[0];
  if (arguments.size() > 1 && !below(arguments[0]).empty())
    words += std::string(" ") + arguments[1];
  return words;
}

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  for (const CommandRow& row : commands())
    if (row.standing != Standing::reserved) names.emplace_back(row.name);
  return names;
}

/// What was probably meant, for example "session list" by "sesion lsit"; empty: no command is near.
/// Each word is compared with words of its place: "session rnu" is near to "session put" as a
/// whole.
std::string meant_command(std::span<const char* const> arguments) {
  const std::string_view first = arguments[0];
  const std::vector<std::string_view> names = command_names();
  const bool is_family = !below(first).empty();
  std::vector<std::string_view> words;
  if (!is_family)
    for (const std::string_view name : names) words.push_back(name.substr(0, name.find(' ')));
  const std::string family(is_family ? first : policy::nearest(first, words));
  if (family.empty() || std::ranges::find(names, family) != names.end()) return family;
  if (arguments.size() < 2) return family + " --help";
  std::vector<std::string_view> seconds;
  for (const std::string_view name : names)
    if (name.starts_with(family + " ")) seconds.push_back(name.substr(family.size() + 1));
  const std::string_view second = policy::nearest(arguments[1], seconds);
  if (!second.empty()) return family + " " + std::string(second);
  return is_family ? std::string() : family + " --help";
}

/// "sbx policy show, sbx changes show": the commands whose second word this is.
std::string with_second_word(std::string_view word) {
  std::string forms;
  for (const std::string_view name : command_names())
    if (const auto space = name.find(' '); space != name.npos && name.substr(space + 1) == word)
      forms += (forms.empty() ? "sbx " : ", sbx ") + std::string(name);
  return forms;
}

/// "sbx session NAME ls": the command comes first.
std::string turned_round(std::span<const char* const> arguments) {
  if (arguments.size() < 3) return {};
  const std::string name = fmt::format("{} {}", arguments[0], arguments[2]);
  const auto names = command_names();
  if (std::ranges::find(names, name) == names.end()) return {};
  std::string form = fmt::format("sbx {} {}", name, shell_word(arguments[1]));
  for (const char* const word : arguments.subspan(3)) form += " " + shell_word(word);
  return form;
}

/// "sbx python3 a.py": all of it is meant to run.
std::string run_form(std::span<const char* const> arguments) {
  std::string form = "sbx run";
  for (const char* const word : arguments) form += " " + shell_word(word);
  return form;
}

std::unexpected<Error> unknown_command(std::span<const char* const> arguments) {
  if (const std::string form = command_habit(arguments); !form.empty())
    return usage("unknown-command", fmt::format("unknown command \"{}\"", words_of(arguments)),
                 form);
  if (const std::string form = turned_round(arguments); !form.empty())
    return usage("unknown-command", fmt::format("unknown command \"{}\"", words_of(arguments)),
                 form);
  const std::string second_words = below(arguments[0]);
  if (!second_words.empty() && arguments.size() == 1)
    return usage("missing-command", fmt::format("\"sbx {}\" needs a command", arguments[0]),
                 fmt::format("one of {}", second_words));
  const std::string typed = words_of(arguments);
  const std::string meant = meant_command(arguments);
  if (typed == "version")
    return usage("unknown-command", "unknown command \"version\"", "sbx --version");
  if (!meant.empty())
    return usage("unknown-command", fmt::format("unknown command \"{}\"", typed),
                 fmt::format("did you mean \"sbx {}\"?", meant));
  if (const std::string forms = with_second_word(typed); !forms.empty())
    return usage("unknown-command", fmt::format("unknown command \"{}\"", typed),
                 fmt::format("did you mean {}?", forms));
  return usage("unknown-command", fmt::format("unknown command \"{}\"", typed),
               second_words.empty()
                   ? fmt::format("\"sbx help\" lists the commands; a program is run by: {}",
                                 run_form(arguments))
                   : fmt::format("\"sbx {}\" has {}", arguments[0], second_words));
}

/// "sbx changes --help", though there is no command "changes".
bool asks_for_family(std::span<const char* const> arguments) {
  if (arguments.size() != 2 || below(arguments[0]).empty()) return false;
  const std::string_view option = arguments[1];
  return option == "--help" || option == "-h";
}

const CommandRow& top_row() {
  return commands().front();
}

Status parse_options(const CommandRow& row, std::span<const char* const> arguments,
                     Invocation& typed) {
  Split split = SBX_TRY(split_arguments(row, arguments, UnknownOption::is_error));
  try {
    CLI::App app;
    app.set_help_flag();
    // Declaring all options of `run` would cost 85 us a start: CLI11 compares each new name with
    // all others.
    for (const OptionRow* used : split.used) add_option(app, *used);
    std::reverse(split.own.begin(), split.own.end());  // CLI11 takes its vector from the back
    app.parse(std::move(split.own));
    for (const OptionRow* used : split.used) SBX_TRY(take_result(app, *used, typed));
    return take_operands(row, split, typed);
  } catch (const CLI::Error& error) {
    return usage("usage", error.what());
  }
}

/// Form and destination of the answer: a group of `run`, and those options of `session eval`.
bool is_of_answer(const OptionRow& option) {
  const std::string_view names = option.names;
  return option.group == kAnswerGroup || names == "--json" || names == "--stream" ||
         names == "--color" || names == "--cells";
}

OptionDoc describe(const CLI::Option& option) {
  OptionDoc doc;
  if (!option.get_snames().empty()) doc.short_name = "-" + option.get_snames().front();
  if (!option.get_lnames().empty()) doc.long_name = "--" + option.get_lnames().front();
  if (option.get_items_expected_max() > 0) doc.value = option.get_type_name();
  doc.group = option.get_group();
  doc.text = option.get_description();
  doc.choices = choices_of(doc.value);
  return doc;
}

}  // namespace

bool is_run(std::span<const char* const> arguments) {
  const CommandRow* const row = choose(arguments).row;
  const std::string_view name = row == nullptr ? "" : row->name;
  return name == "run" || name == "session exec";
}

std::string similar_command(const std::string& typed) {
  std::vector<std::string_view> names = command_names();
  for (const std::string_view name : command_names())
    if (name.contains(' ')) names.push_back(name.substr(0, name.find(' ')));
  return std::string(policy::nearest(typed, names));
}

/// `sbx --timeout 5s run x`: an option of run before the word "run".
Status check_place(std::span<const char* const> arguments) {
  if (arguments.empty()) return {};
  const std::string_view option = arguments.front();
  const CommandRow* const run = choose(std::array<const char*, 1>{"run"}).row;
  const std::string name(option.substr(0, option.find('=')));
  if (find_option(top_row(), name) != nullptr || find_option(*run, name) == nullptr) return {};
  return usage("misplaced-option", fmt::format("the command comes before {}", name),
               fmt::format("sbx run {} ...", name));
}

Result<Invocation> parse_command_line(std::span<const char* const> arguments) {
  Invocation typed;
  const bool bare = arguments.empty() || *arguments.front() == '-';
  Chosen chosen = bare ? Chosen{&top_row(), 0} : choose(arguments);
  if (chosen.row == nullptr && asks_for_family(arguments)) {
    typed.command = "help";
    typed.operands = {arguments.front()};
    return typed;
  }
  if (chosen.row == nullptr) return unknown_command(arguments);
  typed.command = chosen.row->name;
  if (bare) SBX_TRY(check_place(arguments));
  if (chosen.row->standing == Standing::reserved)
    return usage("reserved",
                 fmt::format("\"sbx {}\" is reserved for a later version", typed.command));
  SBX_TRY(parse_options(*chosen.row, arguments.subspan(chosen.words), typed));
  if (bare && typed.help && !typed.operands.empty()) {  // sbx --help run
    typed.help = false;
    typed.command = "help";
    return typed;
  }
  if (bare && !typed.operands.empty())
    return usage("misplaced-option",
                 fmt::format("the command comes first: sbx {}{}",
                             choose(std::span(arguments).last(typed.operands.size())).row == nullptr
                                 ? "run -- "
                                 : "",
                             typed.operands.front()));
  return typed;
}

Invocation salvage_output(std::span<const char* const> arguments) {
  Invocation typed;
  const Chosen chosen = choose(arguments);
  if (chosen.row == nullptr) {
    typed.output.json = std::ranges::find(arguments, std::string_view("--json")) != arguments.end();
    return typed;
  }
  const CommandRow& row = *chosen.row;
  typed.command = row.name;
  auto split = split_arguments(row, arguments.subspan(chosen.words), UnknownOption::is_skipped);
  if (!split) return typed;
  if (row.before_program < 0) typed.operands = split->operands;
  typed.request.operands = std::move(split->operands);
  if (row.before_program > 0 && !typed.request.operands.empty())
    typed.request.operands.erase(typed.request.operands.begin());  // the session
  for (std::size_t i = 0; i < split->own.size(); ++i) {
    const OptionRow* option = find_option(row, split->own[i]);
    const bool has_value = option != nullptr && *option->value != '\0' && *option->value != '[';
    std::string_view value;
    if (has_value && i + 1 < split->own.size()) value = split->own[i + 1];
    i += has_value ? 1 : 0;
    if (option != nullptr && std::string_view(option->names) == "--cells")
      typed.cell.is_notebook = true;
    // An error in this value has been reported, or matters less than the first one.
    if (option != nullptr && is_of_answer(*option)) (void)option->take(typed, value);
  }
  return typed;
}

std::vector<CommandDoc> describe_tree() {
  std::vector<CommandDoc> tree;
  for (const CommandRow& row : commands()) {
    if (row.standing == Standing::reserved) continue;
    CommandDoc& doc =
        tree.emplace_back(CommandDoc{.name = row.name, .operands = row.operands, .text = row.text});
    CLI::App app;
    app.set_help_flag();
    for (const OptionRow& option : row.options()) add_option(app, option);
    for (const CLI::Option* option : std::as_const(app).get_options())
      doc.options.push_back(describe(*option));
  }
  return tree;
}

}  // namespace sbx::cli
