#pragma once

#include <string_view>

#include "policy/syntax.hpp"

namespace sbx::policy {

/// Says in sbx's own words what the TOML parser found: `description` is the parser's, `line` and `column` are where it
/// stopped in `text`. What is certainly no TOML (JSON, YAML, a binary file) is named as what it is.
[[nodiscard]] SyntaxError explain_syntax(std::string_view text, std::string_view description,
                                         int line, int column);

}  // namespace sbx::policy
