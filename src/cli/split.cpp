#include "cli/split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include <sbx/units.hpp>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/habits.hpp"
#include "cli/usage.hpp"
#include "policy/keys.hpp"

namespace sbx::cli {
namespace {

bool is_switch(const OptionRow& row) {
  return *row.value == '\0';
}
bool value_is_optional(const OptionRow& row) {
  return *row.value == '[';
}

class Splitter {
 public:
  Splitter(const CommandRow& command, std::span<const char* const> arguments, UnknownOption unknown)
      : command_(command), unknown_(unknown), arguments_(arguments) {}

  Result<Split> split() {
    // Everything from the first operand of a program on belongs to it.
    const int before_program = command_.before_program;
    for (at_ = 0; at_ < arguments_.size(); ++at_) {
      const std::string_view word = arguments_[at_];
      if (word == "--") {
        result_.after_dashes = true;
        result_.before_dashes = result_.operands.size();
        ++at_;
        break;
      }
      if (word.starts_with("--")) {
        SBX_TRY(long_option(word));
      } else if (word.size() > 1 && word.front() == '-') {
        SBX_TRY(short_options(word));
      } else if (before_program >= 0 &&
                 result_.operands.size() >= static_cast<std::size_t>(before_program)) {
        break;
      } else {
        result_.operands.emplace_back(word);
      }
    }
    for (; at_ < arguments_.size(); ++at_) result_.operands.emplace_back(arguments_[at_]);
    return std::move(result_);
  }

 private:
  /// Abbreviations are not accepted; a prefix of one name is suggested.
  static std::string_view meant_option(std::string_view word,
                                       std::span<const std::string_view> names) {
    if (!word.starts_with("--")) return {};
    if (const auto near = policy::nearest(word, names); !near.empty()) return near;
    for (const std::string_view name : names)
      if (word.size() > 3 && name.starts_with(word)) return name;
    return {};
  }

  /// The form for an option that another command has, or another tool.
  [[nodiscard]] std::string form_elsewhere(std::string_view word) const {
    const std::string_view name = command_.name;
    const auto has = [word](std::string_view command) {
      const auto row = std::ranges::find(commands(), command, &CommandRow::name);
      return row != commands().end() && find_option(*row, word) != nullptr;
    };
    if (const std::string_view next = command_.passes_on_to; !next.empty() && has(next))
      return passed_on();
    if (std::string form = option_habit(name, word); !form.empty()) return form;
    if (name.starts_with("session ") && name != "session start" && has("session start"))
      return fmt::format("the session's, given at its start: sbx session start NAME {}", word);
    return {};
  }

  /// "mcp install claude --print -p agent", with the "--" that is missing.
  [[nodiscard]] std::string passed_on() const {
    std::string form = fmt::format("sbx {}", command_.name);
    for (std::size_t i = 0; i < arguments_.size(); ++i)
      form += (i == at_ ? " -- " : " ") + shell_word(arguments_[i]);
    return form;
  }

  Status unknown(std::string_view word) const {
    if (unknown_ == UnknownOption::is_skipped) return {};
    if (const std::string form = form_elsewhere(word); !form.empty())
      return usage("unknown-option", fmt::format("unknown option \"{}\"", word), form);
    std::vector<std::string_view> names;
    for (const OptionRow& row : command_.options()) {
      const std::string_view all = row.names;
      const auto dashes = all.find("--");
      if (dashes != std::string_view::npos) names.push_back(all.substr(dashes));
    }
    const bool is_number = word.size() > 1 && word[1] >= '0' && word[1] <= '9';
    if (is_number && parse_duration(word.substr(1)))
      return usage("unknown-option", fmt::format("unknown option \"{}\"", word),
                   fmt::format("a time has no sign: {}", word.substr(1)));
    if (is_number)
      return usage("unknown-option", fmt::format("unknown option \"{}\"", word),
                   fmt::format("a value that begins with \"-\" comes after \"--\": -- {}", word));
    const std::string_view meant = meant_option(word, names);
    return usage("unknown-option", fmt::format("unknown option \"{}\"", word),
                 meant.empty() ? fmt::format("\"{}\" lists the options", help())
                               : fmt::format("did you mean \"{}\"?", meant));
  }

  void use(const OptionRow& row, const std::string& name) {
    result_.own.push_back(name);
    if (std::find(result_.used.begin(), result_.used.end(), &row) == result_.used.end())
      result_.used.push_back(&row);
  }

  [[nodiscard]] std::string help() const {
    return *command_.name == '\0' ? "sbx --help" : fmt::format("sbx {} --help", command_.name);
  }

  Status take_next(const std::string& name) {
    if (at_ + 1 >= arguments_.size()) {
      if (unknown_ == UnknownOption::is_skipped) return {};
      return usage(
          "missing-value", fmt::format("{} needs a value", name),
          fmt::format("{} {}; \"{}\" says more", name, find_option(command_, name)->value, help()));
    }
    result_.own.emplace_back(arguments_[++at_]);
    return {};
  }

  Status long_option(std::string_view word) {
    const auto equals = word.find('=');
    const std::string name(word.substr(0, equals));
    const OptionRow* row = find_option(command_, name);
    if (row == nullptr) return unknown(name);
    use(*row, name);
    if (is_switch(*row)) {
      if (equals != std::string_view::npos && unknown_ == UnknownOption::is_error)
        return usage("unexpected-value", fmt::format("{} takes no value", name));
      return {};
    }
    // An optional value must be written "--name=value": the next word may be the program.
    if (value_is_optional(*row)) {
      if (equals + 1 == word.size())  // an unset variable must not mean "everything"
        return usage("missing-value", fmt::format("{}= has an empty value", name),
                     fmt::format("write {0} alone, or {0}=VALUE", name));
      result_.own.back() = word;
      return {};
    }
    if (equals == std::string_view::npos) return take_next(name);
    result_.own.emplace_back(word.substr(equals + 1));
    return {};
  }

  /// "-p x", "-px", "-qv": switches may be combined; the first option with a value ends the word.
  Status short_options(std::string_view word) {
    // "-policy x" is probably meant as "--policy x", not as -p with the value "olicy".
    const std::string long_name = "-" + std::string(word.substr(0, word.find('=')));
    if (word.size() > 2 && find_option(command_, long_name) != nullptr)
      return usage("unknown-option", fmt::format("unknown option \"{}\"", word),
                   fmt::format("did you mean \"{}\"?", long_name));
    for (std::size_t letter = 1; letter < word.size(); ++letter) {
      const std::string name = {'-', word[letter]};
      const OptionRow* row = find_option(command_, name);
      if (row == nullptr) return unknown(letter == 1 ? word : std::string_view(name));
      use(*row, name);
      if (is_switch(*row)) continue;
      if (letter + 1 == word.size()) return take_next(name);
      result_.own.emplace_back(word.substr(letter + 1));
      return {};
    }
    return {};
  }

  const CommandRow& command_;
  UnknownOption unknown_;
  std::span<const char* const> arguments_;
  std::size_t at_ = 0;
  Split result_;
};

}  // namespace

const OptionRow* find_option(const CommandRow& command, std::string_view name) {
  for (const OptionRow& row : command.options()) {
    const std::string_view names = row.names;
    const auto comma = names.find(',');
    if (name == names.substr(0, comma)) return &row;
    if (comma != std::string_view::npos && name == names.substr(comma + 1)) return &row;
  }
  return nullptr;
}

Result<Split> split_arguments(const CommandRow& command, std::span<const char* const> arguments,
                              UnknownOption unknown) {
  return Splitter(command, arguments, unknown).split();
}

}  // namespace sbx::cli
