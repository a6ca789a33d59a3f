#pragma once

#include <string>
#include <string_view>

namespace sbx::policy {

/// Why a text is not TOML, or more of it than sbx reads.
struct SyntaxError {
  std::string code;  ///< "toml-syntax", "duplicate-key", "nested-too-deep", "invalid-utf8"
  std::string message;
  std::string hint{};
  int line = 0;
  int column = 0;
};

/// Says in sbx's own words what the TOML parser found: `description` is the parser's, `line` and
/// `column` are where it stopped in `text`. What is certainly no TOML (JSON, YAML, a binary file)
/// is named as what it is.
[[nodiscard]] SyntaxError explain_syntax(std::string_view text, std::string_view description,
                                         int line, int column);

}  // namespace sbx::policy
