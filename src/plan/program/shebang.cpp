#include "plan/program/shebang.hpp"

#include "base/letters.hpp"
#include "plan/files/path_text.hpp"

namespace sbx::plan {
namespace {

constexpr std::string_view kBlanksOfLine = " \t";

/// The words of `env -S`. Quotes group words; empty if there are escapes or variables, which only
/// env interprets.
std::optional<std::vector<std::string>> split(std::string_view text) {
  if (text.find_first_of("\\$#") != std::string_view::npos) return std::nullopt;
  std::vector<std::string> words;
  bool open = false;
  char quote = '\0';
  for (const char letter : text) {
    if (quote == '\0' && kBlanksOfLine.contains(letter)) {
      open = false;
      continue;
    }
    if (!open) words.emplace_back();
    open = true;
    if (quote == '\0' && (letter == '"' || letter == '\'')) {
      quote = letter;
    } else if (letter == quote) {
      quote = '\0';
    } else {
      words.back() += letter;
    }
  }
  if (quote != '\0') return std::nullopt;
  return words;
}

}  // namespace

std::optional<Shebang> read_shebang(std::string_view head) {
  if (!head.starts_with("#!")) return std::nullopt;
  const std::string_view line = trimmed(head.substr(2, head.find('\n') - 2));
  const std::size_t end = line.find_first_of(kBlanksOfLine);
  Shebang shebang{.interpreter = std::string(line.substr(0, end)), .arguments = {}};
  if (shebang.interpreter.empty()) return std::nullopt;
  if (end != std::string_view::npos) {
    const std::string_view argument = trimmed(line.substr(end));
    if (!argument.empty()) shebang.arguments.emplace_back(argument);
  }
  return shebang;
}

bool is_env_alone(const Shebang& shebang) {
  return base_name(shebang.interpreter) == "env" &&
         (shebang.arguments.empty() || shebang.arguments.front() == "-S");
}

std::optional<std::vector<std::string>> env_command(const Shebang& shebang) {
  if (base_name(shebang.interpreter) != "env" || shebang.arguments.empty()) return std::nullopt;
  const std::string_view argument = shebang.arguments.front();
  std::vector<std::string> words = {std::string(argument)};
  if (argument.starts_with("-S")) {
    auto split_words = split(argument.substr(2));
    if (!split_words) return std::nullopt;
    words = std::move(*split_words);
  }
  if (words.empty() || words.front().starts_with('-') || words.front().contains('='))
    return std::nullopt;
  return words;
}

}  // namespace sbx::plan
