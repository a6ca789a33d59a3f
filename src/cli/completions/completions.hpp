#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/app.hpp"

namespace sbx::cli {

/// The completion script for bash, zsh or fish, made from the tree; empty for another shell.
[[nodiscard]] std::string completion_script(const std::vector<CommandDoc>& tree,
                                            std::string_view shell);

}  // namespace sbx::cli
