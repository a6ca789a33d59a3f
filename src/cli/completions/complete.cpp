#include "cli/completions/complete.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/completions/names.hpp"
#include "cli/session_options.hpp"
#include "cli/split.hpp"
#include "policy/keys.hpp"

namespace sbx::cli::completion {
namespace {

/// What `session kill` is given most.
constexpr std::string_view kSignals = "INT TERM HUP QUIT KILL USR1 USR2 STOP CONT";

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool takes_next_word(const OptionRow& row) {
  return *row.value != '\0' && *row.value != '[';
}

/// The words of "a|b"; none where one stands for something else.
std::vector<std::string_view> closed_choice(std::string_view text) {
  const bool closed = has(text, "|") && std::ranges::none_of(text, [](char c) {
                        return (c >= 'A' && c <= 'Z') || c == '[' || c == ' ';
                      });
  return closed ? policy::split(text, '|') : std::vector<std::string_view>{};
}

class Completer {
 public:
  explicit Completer(std::vector<std::string> words) : words_(std::move(words)) {
    if (words_.empty()) words_.emplace_back();
    join_at_equals();
  }

  std::string answer() {
    begun_ = words_.back();
    if (const auto first = find_command()) inside(*first);
    std::string text = also_ + "\n";
    for (const Offer& each : offers_) {
      // A name that a program made up could steer the terminal.
      if (each.word.starts_with(begun_) && printable(each.word) == each.word)
        text += (before_ + each.word).substr(shown_) + "\t" + summary(each.text) + "\n";
    }
    return text;
  }

 private:
  /// The first sentence, in one line.
  static std::string summary(std::string_view text) {
    return printable(text.substr(0, text.find(". ")));
  }

  /// bash divides "--policy=x" and "limits.memory=x" at "=", and completes what follows it.
  void join_at_equals() {
    for (std::size_t i = 1; i < words_.size();) {
      if (words_[i] != "=") {
        ++i;
        continue;
      }
      const bool at_end = i + 1 == words_.size();
      words_[i - 1] += "=";
      if (i + 2 >= words_.size()) shown_ = words_[i - 1].size();
      if (!at_end) words_[i - 1] += words_[i + 1];
      const auto at = words_.begin() + static_cast<std::ptrdiff_t>(i);
      words_.erase(at, at + (at_end ? 1 : 2));
      divided_ += at_end ? 1 : 2;
    }
  }

  void offer(Offers offers) { std::ranges::move(offers, std::back_inserter(offers_)); }
  void offer(std::span<const std::string_view> words) {
    for (const std::string_view each : words) offers_.push_back({std::string(each)});
  }

  void offer_options(const CommandRow& command) {
    for (const OptionRow& row : command.options())
      for (const std::string_view name : policy::split(row.names, ','))
        offers_.push_back({std::string(name), row.text});
  }

  /// First or second words of commands, each once.
  void offer_commands(std::string_view first) {
    for (const CommandRow& row : commands()) {
      std::string_view name = row.name;
      if (name.empty() || row.standing != Standing::works) continue;
      if (!first.empty() &&
          (!name.starts_with(first) || name.size() <= first.size() || name[first.size()] != ' '))
        continue;
      if (!first.empty()) name.remove_prefix(first.size() + 1);
      const std::size_t blank = name.find(' ');
      const std::string word(name.substr(0, blank));
      const bool is_new = std::ranges::find(offers_, word, &Offer::word) == offers_.end();
      if (is_new) offers_.push_back({word, blank == std::string_view::npos ? row.text : ""});
    }
  }

  static const CommandRow* row_of(std::string_view name) {
    const auto found = std::ranges::find_if(commands(), [&](const CommandRow& row) {
      return name == row.name && row.standing == Standing::works;
    });
    return found == commands().end() ? nullptr : &*found;
  }

  /// The index of the first word after the command's name; nothing while the name is typed.
  std::optional<std::size_t> find_command() {
    if (words_.size() == 1) {
      offer_commands("");
      offer_options(commands().front());
      return std::nullopt;
    }
    if (words_.size() == 2) offer_commands(words_[0]);
    // "mcp" is a command, and so is "mcp tools".
    if (words_.size() > 2 && (command_ = row_of(words_[0] + " " + words_[1])) != nullptr) return 2;
    command_ = row_of(words_[0]);
    return command_ == nullptr ? std::nullopt : std::optional(std::size_t{1});
  }

  /// What stands after the command's name, read as split.cpp reads it.
  void inside(std::size_t first) {
    bool only_operands = false;
    const OptionRow* wants_value = nullptr;
    for (std::size_t i = first; i + 1 < words_.size(); ++i) {
      const std::string& word = words_[i];
      if (only_operands || word.size() < 2 || word.front() != '-') {
        if (starts_program()) return belongs_to_program(i);
        operands_.push_back(word);
      } else if (word == "--" && *command_->passes_on_to != '\0') {
        command_ = row_of(command_->passes_on_to);  // its options follow
        operands_.clear();
      } else if (word == "--") {
        only_operands = true;
      } else if (const OptionRow* const row = last_option(word);
                 row != nullptr && takes_next_word(*row)) {
        if (i + 2 == words_.size()) wants_value = row;
        ++i;
      }
    }
    if (wants_value != nullptr) return value_of(*wants_value);
    if (!only_operands && begun_.starts_with("--") && has(begun_, "=")) return joined_value();
    if (!only_operands && begun_.starts_with('-')) return offer_options(*command_);
    if (starts_program()) return belongs_to_program(words_.size() - 1);
    operand();
  }

  /// The option whose value may be the next word: not one that has it already.
  [[nodiscard]] const OptionRow* last_option(const std::string& word) const {
    if (word.starts_with("--")) return has(word, "=") ? nullptr : find_option(*command_, word);
    for (std::size_t i = 1; i < word.size(); ++i) {
      const OptionRow* const row = find_option(*command_, std::string{'-', word[i]});
      if (row == nullptr || takes_next_word(*row)) return i + 1 == word.size() ? row : nullptr;
    }
    return nullptr;
  }

  [[nodiscard]] bool starts_program() const {
    return command_->before_program >= 0 &&
           operands_.size() >= static_cast<std::size_t>(command_->before_program);
  }
  void belongs_to_program(std::size_t word) {
    also_ = "program " + std::to_string(word + 1 + divided_);
  }

  void joined_value() {
    const std::size_t equals = begun_.find('=');
    const OptionRow* const row = find_option(*command_, begun_.substr(0, equals));
    before_ = begun_.substr(0, equals + 1);
    begun_.erase(0, equals + 1);
    if (row != nullptr && *row->value != '\0') value_of(*row);
  }

  void value_of(const OptionRow& row) {
    const std::string_view value = row.value;
    const std::string_view names = row.names;
    if (value == "POLICY") {
      offer(policies());
      also_ = "files";
    } else if (value == "KEY=TOML") {
      offer_settings();
    } else if (names == "--session") {
      offer(sessions());
    } else if (names == "--cwd") {
      if (!operands_.empty()) offer(directories(operands_[0], begun_));
      also_ = "nospace";
    } else if (names == "--lang") {
      offer(std::string_view(command_->name) == "session eval" ||
                    std::string_view(command_->name) == "session context"
                ? languages_of_contexts()
                : languages());
    } else if (names == "--context") {
      if (!operands_.empty()) offer(contexts(operands_[0]));
    } else if (value == "inherit|null|FILE" || value == kStdinOfCall) {
      offer({{"inherit"}, {"null"}});
      if (value == kStdinOfCall) offers_.push_back({"open"});
      also_ = "files";
    } else if (const auto words = closed_choice(value); !words.empty()) {
      offer(words);
    } else {
      host_files(value);
    }
  }

  /// "limits.memory=", or, of a key that takes one of a few words, each with such a value.
  void offer_settings() {
    const policy::Key* const key = policy::find_key(begun_.substr(0, begun_.find('=')));
    if (key == nullptr || !has(begun_, "=")) {
      offer(keys());
      also_ = "nospace";
    } else if (key->type == policy::Type::word) {
      for (const std::string_view each : policy::words(*key))
        offers_.push_back({std::string(key->name) + "=\"" + std::string(each) + "\""});
    }
  }

  void host_files(std::string_view kind) {
    if (has(kind, "DIR"))
      also_ = "directories";
    else if (has(kind, "FILE") || has(kind, "PATH"))
      also_ = "files";
  }

  void operand() {
    const std::string_view name = command_->name;
    const std::string_view kinds = command_->operands;
    if (name.starts_with("session ") && kinds.starts_with("NAME")) return session_operand(name);
    if (has(kinds, "POLICY")) {
      offer(policies());
      also_ = "files";
    } else if (has(kinds, "KEY")) {
      offer(explained());
    } else if (has(kinds, "COMMAND")) {
      offer_commands(operands_.empty() ? "" : operands_[0]);
    } else if (kinds.starts_with("SET")) {
      if (operands_.empty() || kinds.ends_with("...")) offer(sets());
    } else if (has(kinds, "CLIENT")) {
      if (operands_.empty()) offer(clients());
    } else if (kinds.starts_with("ID")) {
      offer(runs());
    } else if (const auto words = closed_choice(kinds); !words.empty()) {
      offer(words);
    } else {
      host_files(kinds);
    }
    leave_out_typed();
  }

  void session_operand(std::string_view command) {
    const std::string_view name = command.substr(std::string_view("session ").size());
    if (operands_.empty() || name == "stop") {
      offer(sessions());
      return leave_out_typed();
    }
    const std::string& session = operands_[0];
    const bool second = operands_.size() == 1;
    if (name == "interrupt" || name == "restart" || name == "close") {
      if (second) offer(contexts(session));
    } else if (name == "kill" && !second) {
      if (operands_.size() == 2) offer(policy::split(kSignals, ' '));
    } else if (name == "kill" || name == "wait" || name == "logs" || name == "send") {
      if (second)
        offer(calls(session, name == "kill"   ? Which::running
                             : name == "logs" ? Which::background
                                              : Which::running_background));
    } else if (name == "ls" || name == "get" || name == "stat" || name == "mkdir" || name == "mv" ||
               name == "rm") {
      if (name == "get" || name == "mv" || second) offer(paths(session, begun_));
      also_ = "nospace";
    } else if (name == "put" || (name == "eval" && second)) {
      also_ = "files";
    }
  }

  /// What a command takes several of, it takes once each.
  void leave_out_typed() {
    std::erase_if(offers_, [&](const Offer& each) {
      return std::ranges::find(operands_, each.word) != operands_.end();
    });
  }

  std::vector<std::string> words_;
  std::size_t divided_ = 0;  ///< words that were joined to others
  std::size_t shown_ = 0;    ///< where in the last word the part begins that bash completes
  std::string begun_;        ///< what is completed
  std::string before_;       ///< "--policy=": stands before it in the same word
  const CommandRow* command_ = nullptr;
  std::vector<std::string> operands_;
  std::string also_;
  Offers offers_;
};

}  // namespace

std::string complete(std::vector<std::string> words) {
  return Completer(std::move(words)).answer();
}

}  // namespace sbx::cli::completion
