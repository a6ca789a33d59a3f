#include "cli/completions/words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "plan/filter/table.hpp"
#include "plan/program/languages.hpp"
#include "policy/keys.hpp"
#include "policy/load.hpp"
#include "record/codes.hpp"
#include "record/terms.hpp"

namespace sbx::cli::completion {
namespace {

void append(std::string& list, std::string_view word) {
  if (!list.empty()) list += ' ';
  list += word;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string_view word : policy::split(text, '|')) words.emplace_back(word);
  return words;
}

}  // namespace

Kind kind_of(const OptionDoc& option) {
  const std::string_view value = option.value;
  if (value.empty() || value.starts_with('[')) return Kind::none;
  if (value == "POLICY") return Kind::policy;
  if (value == "KEY=TOML") return Kind::key;
  if (option.long_name == "--session") return Kind::session_name;
  if (!words_of(option).empty()) return Kind::words;
  if (has(value, "DIR")) return Kind::folder;
  return has(value, "FILE") || has(value, "PATH") ? Kind::file : Kind::none;
}

Kind operand_kind(const CommandDoc& command) {
  const std::string_view operands = command.operands;
  if (command.name.starts_with("session ") && operands.starts_with("NAME")) return Kind::session;
  if (has(operands, "POLICY")) return Kind::policy;
  if (has(operands, "KEY")) return Kind::name;
  if (has(operands, "COMMAND")) return Kind::command;
  if (operands.starts_with("SET")) return Kind::set;
  if (!operand_words(command).empty()) return Kind::words;
  if (has(operands, "DIR")) return Kind::folder;
  return has(operands, "FILE") ? Kind::file : Kind::none;
}

std::vector<std::string> words_of(const OptionDoc& option) {
  if (!option.choices.empty()) return option.choices;
  if (option.value == "inherit|null|FILE") return {"inherit", "null"};
  if (option.long_name == "--lang") {
    std::string names = plan::language_names();
    std::erase(names, ',');
    std::replace(names.begin(), names.end(), ' ', '|');
    return split_words(names);
  }
  return {};
}

std::vector<std::string> operand_words(const CommandDoc& command) {
  const bool closed =
      has(command.operands, "|") && std::ranges::none_of(command.operands, [](char c) {
        return (c >= 'A' && c <= 'Z') || c == '[' || c == ' ';
      });
  return closed ? split_words(command.operands) : std::vector<std::string>{};
}

std::string policy_names() {
  std::string names;
  for (const policy::Builtin& builtin : policy::builtins()) append(names, builtin.name);
  return names;
}

std::string key_names() {
  std::string names;
  for (const policy::Key& key : policy::keys())
    if (!key.of_text()) append(names, key.name);
  return names;
}

std::string explained_names() {
  std::string names = key_names();
  for (std::size_t i = 0; i < plan::group_count(); ++i)
    append(names, plan::text_of(static_cast<plan::Group>(i)).name);
  for (const record::CodeText& code : record::codes())
    if (code.code != "setup-STAGE") append(names, code.code);
  for (const std::string_view term : record::term_names()) append(names, term);
  return names;
}

bool takes_next_word(const OptionDoc& option) {
  return !option.value.empty() && !option.value.starts_with('[');
}

std::string value_options(const std::vector<CommandDoc>& tree, std::string_view divider) {
  std::string names;
  for (const OptionDoc* option : all_options(tree)) {
    if (!takes_next_word(*option)) continue;
    if (!names.empty()) names += divider;
    names += all_names(*option, divider);
  }
  return names;
}

std::string all_names(const OptionDoc& option, std::string_view divider) {
  std::string names = option.short_name;
  if (!option.short_name.empty() && !option.long_name.empty()) names += divider;
  return names + option.long_name;
}

std::string option_names(const CommandDoc& command) {
  std::string names;
  for (const OptionDoc& option : command.options) append(names, all_names(option, " "));
  return names;
}

std::string_view summary(const OptionDoc& option) {
  const std::string_view text = option.text;
  return text.substr(0, text.find(". "));
}

std::vector<std::string> first_words(const std::vector<CommandDoc>& tree) {
  std::vector<std::string> words;
  for (const CommandDoc& command : tree) {
    if (command.name.empty()) continue;
    const std::string word = command.name.substr(0, command.name.find(' '));
    if (std::ranges::find(words, word) == words.end()) words.push_back(word);
  }
  return words;
}

std::vector<std::string> second_words(const std::vector<CommandDoc>& tree, std::string_view first) {
  std::vector<std::string> words;
  for (const CommandDoc& command : tree)
    if (command.name.starts_with(std::string(first) + " "))
      words.push_back(command.name.substr(first.size() + 1));
  return words;
}

const CommandDoc& run_of(const std::vector<CommandDoc>& tree) {
  return *std::ranges::find(tree, "run", &CommandDoc::name);
}

std::vector<const CommandDoc*> small_commands(const std::vector<CommandDoc>& tree) {
  std::vector<const CommandDoc*> list;
  for (const CommandDoc& command : tree)
    if (!command.name.empty() && command.name != "run") list.push_back(&command);
  return list;
}

std::vector<const OptionDoc*> all_options(const std::vector<CommandDoc>& tree) {
  std::vector<const OptionDoc*> list;
  for (const CommandDoc& command : tree)
    for (const OptionDoc& option : command.options)
      if (std::ranges::none_of(list, [&](const OptionDoc* other) {
            return other->long_name == option.long_name && other->short_name == option.short_name;
          }))
        list.push_back(&option);
  return list;
}

}  // namespace sbx::cli::completion
