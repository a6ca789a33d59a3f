#include "cli/answer.hpp"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include <sbx/outcome.hpp>

#include "base/tell.hpp"
#include "cli/console.hpp"
#include "cli/repl/wide.hpp"
#include "record/words.hpp"

namespace sbx::cli {

int print(const std::string& text) {
  return console().print(text) ? kDone : exit_status::kCouldNot;
}

namespace {

struct Range {
  char32_t first;
  char32_t last;
};
/// What takes two columns: most of what Unicode Standard Annex 11 calls wide. wcwidth(3) knows it
/// only with a locale, and sbx has none.
constexpr auto kWide = std::to_array<Range>({{0x1100, 0x115F},
                                             {0x2E80, 0x303E},
                                             {0x3041, 0xA4CF},
                                             {0xAC00, 0xD7A3},
                                             {0xF900, 0xFAFF},
                                             {0xFE30, 0xFE6F},
                                             {0xFF00, 0xFF60},
                                             {0xFFE0, 0xFFE6},
                                             {0x1F300, 0x1F64F},
                                             {0x1F680, 0x1F6FF},
                                             {0x1F900, 0x1F9FF},
                                             {0x20000, 0x3FFFD}});
constexpr Range kCombining{0x300, 0x36F};

std::size_t width_of_letter(std::string_view bytes) {
  const auto letter = static_cast<char32_t>(to_wide(bytes).front());
  const auto holds = [letter](const Range& range) {
    return range.first <= letter && letter <= range.last;
  };
  if (holds(kCombining)) return 0;
  return std::ranges::any_of(kWide, holds) ? 2 : 1;
}

/// Where the next letter of a terminal begins: after an escape sequence, or a letter of several
/// bytes.
struct Step {
  std::size_t bytes = 1;
  std::size_t width = 1;
};
Step step_at(std::string_view text) {
  if (text.starts_with("\033[")) {
    const auto end = text.find('m');
    return {end == std::string_view::npos ? text.size() : end + 1, 0};
  }
  std::size_t bytes = 1;
  while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80) ++bytes;
  return {bytes, width_of_letter(text.substr(0, bytes))};
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto [bytes, taken] = step_at(text.substr(at));
    at += bytes;
    width += taken;
  }
  return width;
}

/// The width of what stands before the last column.
std::size_t hanging_indent(std::string_view line, std::size_t columns) {
  std::size_t indent = 0;
  for (auto at = line.find("  "); at != std::string_view::npos; at = line.find("  ", at)) {
    at = std::min(line.find_first_not_of(' ', at), line.size());
    const std::size_t width = width_of(line.substr(0, at));
    if (width > columns / 2 || at == line.size()) break;
    indent = width;
  }
  return indent;
}

void add_fitted(std::string& out, std::string_view line, std::size_t columns) {
  const std::size_t indent = hanging_indent(line, columns);
  std::size_t width = 0;
  while (!line.empty()) {
    const std::size_t blanks = std::min(line.find_first_not_of(' '), line.size());
    const std::string_view word = line.substr(0, std::min(line.find(' ', blanks), line.size()));
    const std::size_t takes = width_of(word);
    if (width > indent && width + takes > columns) {
      out += "\n" + std::string(indent, ' ');
      width = indent + takes - blanks;
      out += word.substr(blanks);
    } else {
      width += takes;
      out += word;
    }
    line.remove_prefix(word.size());
  }
}

}  // namespace

std::string fitted(std::string_view text, std::size_t columns) {
  std::string out;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (width_of(line) <= columns)
      out += line;
    else
      add_fitted(out, line, columns);
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

int print_fitted(const std::string& text) {
  if (::isatty(STDOUT_FILENO) != 1) return print(text);
  return print(fitted(text, terminal_columns(STDOUT_FILENO)));
}

std::string time_text(std::int64_t seconds) {
  const time_t time = seconds;
  tm local{};
  if (seconds == 0 || ::localtime_r(&time, &local) == nullptr) return "?";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1,
                     local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
}

std::string minute_text(std::int64_t seconds) {
  const std::string text = time_text(seconds);
  return text.substr(0, text.rfind(':'));
}

}  // namespace sbx::cli
