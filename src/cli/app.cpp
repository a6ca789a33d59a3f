#include "cli/app.hpp"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <utility>

#include "cli/options.hpp"
#include "policy/keys.hpp"

namespace sbx::cli {
namespace {

std::unexpected<Error> usage(std::string code, std::string message, std::string hint = {}) {
  return fail(Error{.kind = ErrorKind::usage,
                    .code = std::move(code),
                    .message = std::move(message),
                    .hint = std::move(hint)});
}

bool is_switch(const CLI::Option& option) {
  return option.get_items_expected_max() == 0;
}
bool value_is_optional(const CLI::Option& option) {
  return option.get_items_expected_min() == 0;
}

/// One command of the tree. Only the typed command's options are made: a start does not pay for the
/// others.
void add_options(CLI::App& app, std::span<const OptionRow> rows) {
  app.set_help_flag();
  for (const OptionRow& row : rows) {
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
    // Raw results are read below, so nothing is reduced or split: "[a,b]" stays one value.
    option->allow_extra_args(false);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
}

/// A closed choice is written in lower case and divided by bars: "none|host", but not
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

/// The part of argv that belongs to sbx, one option and its value as two strings each, and the
/// rest.
struct Split {
  std::vector<std::string> own;
  std::vector<std::string> operands;
  bool after_dashes = false;
};

class Splitter {
 public:
  enum class Unknown : std::uint8_t { is_error, is_skipped };

  Splitter(const CLI::App& app, const CommandRow& command, Unknown unknown = Unknown::is_error)
      : app_(app), rows_(command.options), command_(command.name), unknown_(unknown) {}

  Result<Split> split(std::span<const char* const> arguments, bool stop_at_operand) {
    arguments_ = arguments;
    for (at_ = 0; at_ < arguments_.size(); ++at_) {
      const std::string_view word = arguments_[at_];
      if (word == "--") {
        result_.after_dashes = true;
        ++at_;
        break;
      }
      if (word.starts_with("--")) {
        SBX_TRY(long_option(word));
      } else if (word.size() > 1 && word.front() == '-') {
        SBX_TRY(short_options(word));
      } else if (stop_at_operand) {
        break;
      } else {
        result_.operands.emplace_back(word);
      }
    }
    for (; at_ < arguments_.size(); ++at_) result_.operands.emplace_back(arguments_[at_]);
    return std::move(result_);
  }

 private:
  /// No abbreviation is accepted, but a beginning of one name is what was meant.
  static std::string_view meant_option(std::string_view word,
                                       std::span<const std::string_view> names) {
    if (!word.starts_with("--")) return {};
    if (const auto near = policy::nearest(word, names); !near.empty()) return near;
    for (const std::string_view name : names)
      if (word.size() > 3 && name.starts_with(word)) return name;
    return {};
  }

  Status unknown(std::string_view word) const {
    if (unknown_ == Unknown::is_skipped) return {};
    std::vector<std::string_view> names;
    for (const OptionRow& row : rows_) {
      const std::string_view all = row.names;
      const auto dashes = all.find("--");
      if (dashes != std::string_view::npos) names.push_back(all.substr(dashes));
    }
    const std::string_view meant = meant_option(word, names);
    const std::string help =
        command_.empty() ? "sbx --help" : fmt::format("sbx {} --help", command_);
    return usage("unknown-option", fmt::format("unknown option \"{}\"", word),
                 meant.empty() ? fmt::format("\"{}\" lists the options", help)
                               : fmt::format("did you mean \"{}\"?", meant));
  }

  Status take_next(const std::string& name) {
    if (at_ + 1 >= arguments_.size())
      return usage("missing-value", fmt::format("{} needs a value", name));
    result_.own.emplace_back(arguments_[++at_]);
    return {};
  }

  Status long_option(std::string_view word) {
    const auto equals = word.find('=');
    const std::string name(word.substr(0, equals));
    const CLI::Option* option = app_.get_option_no_throw(name);
    if (option == nullptr) return unknown(name);
    if (is_switch(*option)) {
      if (equals != std::string_view::npos)
        return usage("unexpected-value", fmt::format("{} takes no value", name));
      result_.own.push_back(name);
      return {};
    }
    // An optional value is taken from "--name=value" only: the next word may be the program.
    if (value_is_optional(*option)) {
      result_.own.emplace_back(word);
      return {};
    }
    result_.own.push_back(name);
    if (equals == std::string_view::npos) return take_next(name);
    result_.own.emplace_back(word.substr(equals + 1));
    return {};
  }

  /// "-p x", "-px", "-qv": switches may stand together, the first option with a value ends the
  /// word.
  Status short_options(std::string_view word) {
    for (std::size_t letter = 1; letter < word.size(); ++letter) {
      const std::string name = {'-', word[letter]};
      const CLI::Option* option = app_.get_option_no_throw(name);
      if (option == nullptr) return unknown(word.size() == 2 ? std::string(word) : name);
      result_.own.push_back(name);
      if (is_switch(*option)) continue;
      if (letter + 1 == word.size()) return take_next(name);
      result_.own.emplace_back(word.substr(letter + 1));
      return {};
    }
    return {};
  }

  const CLI::App& app_;
  std::span<const OptionRow> rows_;
  std::string_view command_;
  Unknown unknown_;
  std::span<const char* const> arguments_;
  std::size_t at_ = 0;
  Split result_;
};

/// The name by which CLI11 finds a row's option.
std::string lookup_name(const OptionRow& row) {
  const std::string_view names = row.names;
  return std::string(
      names.substr(names.find(',') == std::string_view::npos ? 0 : names.find(',') + 1));
}

Status take_results(CLI::App& app, std::span<const OptionRow> rows, Invocation& typed) {
  for (const OptionRow& row : rows) {
    const CLI::Option* option = app.get_option_no_throw(lookup_name(row));
    if (option == nullptr || option->count() == 0) continue;
    const std::vector<std::string>& values = option->results();
    // A scalar given twice: the last one counts, so that a wrapper's options can be overridden.
    const std::size_t first = row.repeat == Repeat::last_wins ? values.size() - 1 : 0;
    for (std::size_t i = first; i < values.size(); ++i) {
      SBX_TRY(check_choice(row, values[i]));
      SBX_TRY(row.take(typed, values[i]));
    }
  }
  return {};
}

Status take_operands(Split& split, Invocation& typed) {
  if (typed.command != "run") {
    typed.operands = std::move(split.operands);
    return {};
  }
  plan::RunRequest& request = typed.request;
  request.operands = std::move(split.operands);
  request.after_dashes = split.after_dashes;
  if (request.code) return {};
  if (!request.after_dashes && !request.operands.empty() && request.operands.front() == "-") {
    request.code_from_stdin = true;
    request.operands.erase(request.operands.begin());
    return {};
  }
  if (request.operands.empty() && !typed.help)
    return usage("nothing-to-run", "nothing to run",
                 "name a script or a command, for example: sbx run script.py");
  return {};
}

struct Chosen {
  const CommandRow* row = nullptr;
  std::size_t words = 0;  ///< of argv that name it
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

std::unexpected<Error> unknown_command(std::span<const char* const> arguments) {
  const bool below_policy = std::string_view(arguments[0]) == "policy";
  if (below_policy && arguments.size() == 1)
    return usage("missing-command", "\"sbx policy\" needs a command",
                 "\"sbx help\" lists them: list, show, check, explain");
  std::string typed = arguments[0];
  if (below_policy) typed += std::string(" ") + arguments[1];
  std::vector<std::string_view> names;
  for (const CommandRow& row : commands())
    if (row.standing != Standing::reserved) names.emplace_back(row.name);
  const std::string_view meant = policy::nearest(typed, names);
  return usage(
      "unknown-command", fmt::format("unknown command \"{}\"", typed),
      meant.empty()
          ? fmt::format("\"sbx help\" lists the commands; a program is run by \"sbx run {}\"",
                        typed)
          : fmt::format("did you mean \"sbx {}\"?", meant));
}

const CommandRow& top_row() {
  return commands().front();
}

Status parse_options(const CommandRow& row, std::span<const char* const> arguments,
                     Invocation& typed) {
  CLI::App app;
  try {
    add_options(app, row.options);
    Splitter splitter(app, row);
    Split split = SBX_TRY(splitter.split(arguments, typed.command == "run"));
    std::reverse(split.own.begin(), split.own.end());  // CLI11 takes its vector from the back
    app.parse(std::move(split.own));
    SBX_TRY(take_results(app, row.options, typed));
    return take_operands(split, typed);
  } catch (const CLI::Error& error) {
    return usage("usage", error.what());
  }
}

OptionDoc describe(const CLI::Option& option) {
  OptionDoc doc;
  if (!option.get_snames().empty()) doc.short_name = "-" + option.get_snames().front();
  if (!option.get_lnames().empty()) doc.long_name = "--" + option.get_lnames().front();
  if (!is_switch(option)) doc.value = option.get_type_name();
  doc.group = option.get_group();
  doc.text = option.get_description();
  doc.choices = choices_of(doc.value);
  return doc;
}

}  // namespace

bool is_run(std::span<const char* const> arguments) {
  return !arguments.empty() && std::string_view(arguments.front()) == "run";
}

Result<Invocation> parse_command_line(std::span<const char* const> arguments) {
  Invocation typed;
  const bool bare = arguments.empty() || *arguments.front() == '-';
  Chosen chosen = bare ? Chosen{&top_row(), 0} : choose(arguments);
  if (chosen.row == nullptr) return unknown_command(arguments);
  typed.command = chosen.row->name;
  if (chosen.row->standing == Standing::reserved)
    return usage("reserved",
                 fmt::format("\"sbx {}\" is reserved for a later version", typed.command));
  if (chosen.row->standing == Standing::not_in_this_version)
    return usage("not-in-this-version",
                 fmt::format("\"sbx {}\" is not in this version", typed.command));
  SBX_TRY(parse_options(*chosen.row, arguments.subspan(chosen.words), typed));
  if (bare && !typed.operands.empty())
    return usage("misplaced-option",
                 fmt::format("the command comes first: sbx {}", typed.operands.front()));
  return typed;
}

Invocation salvage_output(std::span<const char* const> arguments) {
  Invocation typed;
  typed.command = "run";
  const CommandRow& row = *choose(arguments).row;
  CLI::App app;
  add_options(app, row.options);
  auto split = Splitter(app, row, Splitter::Unknown::is_skipped).split(arguments.subspan(1), true);
  if (!split) return typed;
  typed.request.operands = std::move(split->operands);
  for (std::size_t i = 0; i < split->own.size(); ++i) {
    for (const OptionRow& option : row.options) {
      if (std::string_view(option.group) != kAnswerGroup ||
          option.names != std::string_view(split->own[i]))
        continue;
      const std::string value =
          *option.value == '\0' || i + 1 == split->own.size() ? "" : split->own[i + 1];
      (void)option.take(typed,
                        value);  // what is wrong with it has been told, or is less than what was
    }
  }
  return typed;
}

std::vector<CommandDoc> describe_tree() {
  std::vector<CommandDoc> tree;
  for (const CommandRow& row : commands()) {
    if (row.standing == Standing::reserved) continue;
    CommandDoc& doc = tree.emplace_back(CommandDoc{.name = row.name,
                                                   .operands = row.operands,
                                                   .text = row.text,
                                                   .works = row.standing == Standing::works});
    CLI::App app;
    add_options(app, row.options);
    for (const CLI::Option* option : std::as_const(app).get_options())
      doc.options.push_back(describe(*option));
  }
  return tree;
}

}  // namespace sbx::cli
