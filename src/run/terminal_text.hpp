#pragma once

#include <string>

namespace sbx::run {

/// What a program wrote, for a terminal: escape sequences other than colours are made visible.
[[nodiscard]] std::string for_terminal(const std::string& text);

}  // namespace sbx::run
