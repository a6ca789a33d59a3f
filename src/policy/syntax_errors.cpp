#include "policy/syntax_errors.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "policy/quoting.hpp"

namespace sbx::policy {
namespace {

#define SBX_QUOTES "write texts, sizes and durations in quotes, as memory = \"512M\""
#define SBX_KEY_VALUE "write KEY = VALUE, as memory = \"512M\""
constexpr const char* kKeyValue = SBX_KEY_VALUE;

std::string_view without_indent(std::string_view line) {
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

/// The lines before `line`, from the first. One pass: line_of() counts from the top each time.
std::vector<std::string_view> lines_above(std::string_view text, int line) {
  std::vector<std::string_view> lines;
  for (int number = 1; number < line && !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// The line above `line` that sets the key or opens the table first; 0: it was not found.
int earlier_line(std::string_view text, std::string_view name, int line) {
  const auto lines = lines_above(text, line);
  for (auto number = static_cast<int>(lines.size()); number > 0; --number) {
    std::string_view each = without_indent(lines[static_cast<std::size_t>(number) - 1]);
    if (each.starts_with('[')) {
      each = each.substr(0, each.find(']'));
      if (each.ends_with(name)) return number;
      continue;
    }
    const bool in_quotes = each.starts_with('"') || each.starts_with('\'');
    if (in_quotes) each.remove_prefix(1);
    if (!each.starts_with(name)) continue;
    each = without_indent(each.substr(name.size() + (in_quotes ? 1 : 0)));
    if (each.starts_with('=') || each.starts_with('.')) return number;
  }
  return 0;
}

/// toml++ 3.3 garbles the name of a key in quotes, so that is read from its line.
std::string repeated_name(std::string_view text, std::string_view description, int line) {
  const std::string_view key = without_indent(line_of(text, line));
  if (!key.starts_with('"') && !key.starts_with('\'')) return quoted_name(description);
  const auto end = key.find(key.front(), 1);
  return std::string(key.substr(1, end == std::string_view::npos ? end : end - 1));
}

SyntaxError twice(std::string_view text, std::string_view description, int line, int column) {
  const std::string name = repeated_name(text, description, line);
  const int first = earlier_line(text, name, line);
  const bool is_header = without_indent(line_of(text, line)).starts_with('[');
  return {.code = "duplicate-key",
          .message = quoted(name) + " is set twice" +
                     (first > 0 ? ": first in line " + std::to_string(first) : ""),
          .hint = is_header ? "write the keys of a table below one header"
                            : "remove one of them; a list takes several values",
          .line = line,
          .column = column};
}

struct Words {
  std::string message;
  const char* hint = "";
};

/// How files begin that are not text.
bool is_binary(std::string_view text) {
  constexpr auto kHeads = std::to_array<std::string_view>(
      {"\x7f"
       "ELF",
       "PK\x03\x04", "\x1f\x8b", "\x89PNG", "%PDF-", "GIF8", "\xff\xd8\xff", "SQLite format 3"});
  return std::ranges::any_of(kHeads,
                             [&](std::string_view head) { return text.starts_with(head); }) ||
         has(text.substr(0, 4096), std::string_view("\0", 1));
}

/// `[{` and a lone `[` begin a list of JSON; `["a b"]` can be the header of a table.
bool is_json(std::string_view text) {
  if (text.starts_with('{')) return true;
  if (!text.starts_with('[')) return false;
  const auto next = text.find_first_not_of(" \t\r", 1);
  return next != std::string_view::npos && (text[next] == '{' || text[next] == '\n');
}

/// A file that was never meant to be TOML.
std::optional<Words> other_format(std::string_view text, std::string_view description) {
  const auto start = text.find_first_not_of(" \t\r\n");
  const std::string_view begin = start == std::string_view::npos ? "" : text.substr(start);
  if (begin.starts_with("\xff\xfe") || begin.starts_with("\xfe\xff"))
    return Words{"this file is UTF-16; a policy is UTF-8", "save it as UTF-8"};
  if (is_binary(begin))
    return Words{"this is a binary file, not a policy",
                 "name a TOML file; \"sbx policy init\" writes one"};
  if (is_json(begin)) return Words{"this looks like JSON; a policy is TOML", kKeyValue};
  if (begin.starts_with("---") || begin.starts_with("%YAML") || begin.starts_with("- ") ||
      has(description, "saw ':'"))
    return Words{"this looks like YAML; a policy is TOML", kKeyValue};
  if (begin.starts_with('<')) return Words{"this looks like XML; a policy is TOML", kKeyValue};
  if (begin.starts_with("#!") && has(description, "expected '='"))
    return Words{"this looks like a script; a policy is TOML", kKeyValue};
  return std::nullopt;
}

bool begins_list(std::string_view line) {
  for (auto at = line.find('='); at != std::string_view::npos; at = line.find('=', at + 1))
    if (without_indent(line.substr(at + 1)).starts_with('[')) return true;
  return false;
}

/// ": it begins in line 2": the parser names only the line where it gives up on a list.
std::string begin_of_list(std::string_view text, int line) {
  if (begins_list(line_of(text, line))) return "";
  const auto lines = lines_above(text, line);
  for (std::size_t number = lines.size(); number > 0; --number)
    if (begins_list(lines[number - 1])) return ": it begins in line " + std::to_string(number);
  return "";
}

/// A header of a table, or a key, where the next value of a list belongs.
bool in_open_list(std::string_view text, std::string_view description, int line) {
  if (has(description, "closing ']'")) return true;
  return has(description, "could not determine") &&
         without_indent(line_of(text, line)).starts_with('[') && !begin_of_list(text, line).empty();
}

/// Text is held in place, not pointed to: no relocations at start.
struct Sentence {
  char part[40];  ///< of the parser's sentence
  char message[48];
  char hint[64];
};

// The first that matches counts.
constexpr auto kSentences = std::to_array<Sentence>({
    {"parsing boolean", "this is not a value", "write true or false; write texts in quotes"},
    {"multi-line strings are prohibited", "a key can't be a string of several lines",
     SBX_KEY_VALUE},
    {"string: encountered end", "the string is not closed", "end it with the quotes that begin it"},
    {"control character", "a control character", "write it as an escape in a string, as \\u0001"},
    {"closing '}'", "the table is not closed: expected ',' or '}'",
     "put a comma between two values and } at the end"},
    {"dangling comma", "a comma before }", "remove it"},
    {"unknown escape", "unknown escape in a string",
     "write \\\\ for a backslash, or use single quotes"},
    {"hex digit", "an escape in a string is not complete",
     "write \\\\ for a backslash, or use single quotes"},
    {"line-ending backslashes", "text after a backslash in a string",
     "write \\\\ for a backslash, or use single quotes"},
    {"unicode surrogates", "half of a character in a string", "write the character itself"},
    {"greater than U+10FFFF", "an escape in a string is not a character",
     "write the character itself"},
    {"expected '='", "expected '=' after the key", SBX_KEY_VALUE},
    {"blank bare keys", "the header names no table", "write [NAME], as [limits]"},
    {"expected ']'", "the header of the table is not closed", "write [NAME], as [limits]"},
    {"expected keys, tables", "expected a key, a [table] or a # comment", SBX_KEY_VALUE},
    {"bare key starting", "expected a key", SBX_KEY_VALUE},
    {"expected a comment or whitespace", "text after the end of the entry",
     "write each KEY = VALUE on a line of its own"},
    {"expected value, saw", "the value is missing", SBX_KEY_VALUE},
    {"encountered end", "the value is missing", SBX_KEY_VALUE},
    {"64 bits", "the number is too large", "write a number below 9223372036854775808"},
    {"leading zeroes", "a number begins with 0", "remove the 0"},
    {"underscores", "this is not a value", SBX_QUOTES},
    {"could not determine", "this is not a value",
     "write texts and sizes in quotes, as \"512M\", or true or false"},
    {"could not be interpreted", "this is not a value", SBX_QUOTES},
    {"digit", "this is not a value", SBX_QUOTES},
    {"expected ", "this is not a value", SBX_QUOTES},  // parts of dates and numbers
    {"numeric value too long", "this is not a value", SBX_QUOTES},
});

Words words_for(std::string_view text, std::string_view description, int line, int column) {
  const bool at_end = static_cast<std::size_t>(column) > line_of(text, line).size();
  if (has(description, "control character") && at_end)
    return {"the string is not closed on its line", "end it with the quote that begins it"};
  if (in_open_list(text, description, line))
    return {"the list is not closed" + begin_of_list(text, line),
            "put a comma between two values and ] at the end"};
  const auto known = std::ranges::find_if(
      kSentences, [&](const Sentence& each) { return has(description, each.part); });
  if (known != kSentences.end()) return {known->message, known->hint};
  return {"this is not TOML: " + std::string(description), ""};
}

}  // namespace

SyntaxError explain_syntax(std::string_view text, std::string_view description, int line,
                           int column) {
  if (auto other = other_format(text, description))
    return {.code = "toml-syntax",
            .message = std::move(other->message),
            .hint = other->hint,
            .line = 1,
            .column = 1};
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
            .hint = "no key needs that: \"sbx policy explain KEY\" shows what one takes",
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
