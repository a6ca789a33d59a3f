#include "policy/syntax_errors.hpp"

#include <optional>
#include <string>

namespace sbx::policy {
namespace {

constexpr const char* kQuotes = "write texts, sizes and durations in quotes, as memory = \"512M\"";
constexpr const char* kKeyValue = "write KEY = VALUE, as memory = \"512M\"";

std::string_view trimmed(std::string_view line) {
  const auto begin = line.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view{} : line.substr(begin);
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Between the first pair of quotes of the parser's sentence: 'memory'.
std::string quoted_name(std::string_view description) {
  const auto begin = description.find('\'');
  if (begin == std::string_view::npos) return {};
  const auto end = description.find('\'', begin + 1);
  return end == std::string_view::npos
             ? std::string()
             : std::string(description.substr(begin + 1, end - begin - 1));
}

/// The line above `line` that sets the key or opens the table first; 0: it was not found.
int earlier_line(std::string_view text, std::string_view name, int line) {
  for (int number = line - 1; number > 0; --number) {
    std::string_view each = trimmed(line_of(text, number));
    if (each.starts_with('[')) {
      each = each.substr(0, each.find(']'));
      if (each.ends_with(name)) return number;
      continue;
    }
    if (!each.starts_with(name)) continue;
    each = trimmed(each.substr(name.size()));
    if (each.starts_with('=') || each.starts_with('.')) return number;
  }
  return 0;
}

SyntaxError twice(std::string_view text, std::string_view description, int line, int column) {
  const std::string name = quoted_name(description);
  const int first = earlier_line(text, name, line);
  return {.code = "duplicate-key",
          .message = quoted(name) + " is set twice" +
                     (first > 0 ? ": first in line " + std::to_string(first) : ""),
          .hint = "remove one of them; a list takes several values",
          .line = line,
          .column = column};
}

/// A file that was never meant to be TOML.
std::optional<SyntaxError> other_format(std::string_view text, std::string_view description) {
  const auto first = text.find_first_not_of(" \t\r\n");
  const auto begins = [&](std::string_view head) {
    return first != std::string_view::npos && text.substr(first).starts_with(head);
  };
  const auto is = [](const char* message, const char* hint) {
    return SyntaxError{
        .code = "toml-syntax", .message = message, .hint = hint, .line = 1, .column = 1};
  };
  if (has(text.substr(0, 4096), std::string_view("\0", 1)) || begins("\x7f" "ELF"))
    return is("this is a binary file, not a policy", "policies are TOML files");
  if (begins("{")) return is("this looks like JSON; a policy is TOML", kKeyValue);
  if (begins("---") || has(description, "saw ':'"))
    return is("this looks like YAML; a policy is TOML", kKeyValue);
  return std::nullopt;
}

struct Words {
  std::string message;
  const char* hint = "";
};

Words words_for(std::string_view text, std::string_view description, int line, int column) {
  const bool at_end = static_cast<std::size_t>(column) > line_of(text, line).size();
  if (has(description, "control characters") && at_end)
    return {"the string is not closed on its line", "end it with the quote that begins it"};
  if (has(description, "control characters"))
    return {"a control character in a string", "write it as an escape, as \\u0001"};
  if (has(description, "closing ']'"))
    return {"the list is not closed: expected ',' or ']'",
            "put a comma between two values and ] at the end"};
  if (has(description, "closing '}'"))
    return {"the table is not closed: expected ',' or '}'",
            "put a comma between two values and } at the end"};
  if (has(description, "expected '='")) return {"expected '=' after the key", kKeyValue};
  if (has(description, "expected keys, tables"))
    return {"expected a key, a [table] or a # comment", kKeyValue};
  if (has(description, "expected value, saw") || has(description, "encountered end")) return {"the value is missing", kKeyValue};
  if (has(description, "could not determine value type") || has(description, "expected digit"))
    return {"this is not a value", kQuotes};
  return {std::string(description), ""};
}

}  // namespace

SyntaxError explain_syntax(std::string_view text, std::string_view description, int line,
                           int column) {
  if (auto other = other_format(text, description)) return std::move(*other);
  if (has(description, "utf-8"))
    return {.code = "invalid-utf8",
            .message = "the file is not UTF-8",
            .hint = "save it as UTF-8",
            .line = line,
            .column = column};
  if (has(description, "cannot redefine")) return twice(text, description, line, column);
  if (has(description, "maximum nested value depth"))
    return {.code = "nested-too-deep",
            .message = "values are nested more than 16 deep",
            .hint = "",
            .line = line,
            .column = column};
  Words words = words_for(text, description, line, column);
  return {.code = "toml-syntax",
          .message = std::move(words.message),
          .hint = words.hint,
          .line = line,
          .column = column};
}

}  // namespace sbx::policy
