#pragma once

#include <string>
#include <string_view>

/// Letters of texts that people write: policies, files of settings, the first lines of scripts.
namespace sbx {

inline constexpr std::string_view kBlanks = " \t\r";

/// Without the blanks at both ends.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view text,
                                                 std::string_view blanks = kBlanks) {
  const std::size_t start = text.find_first_not_of(blanks);
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(blanks) - start + 1);
}

[[nodiscard]] constexpr bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

[[nodiscard]] inline std::string double_quoted(std::string_view text) {
  return '"' + std::string(text) + '"';
}

}  // namespace sbx
