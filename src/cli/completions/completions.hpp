#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/app.hpp"

namespace sbx::cli {

namespace completion {
[[nodiscard]] std::string bash_script(const std::vector<CommandDoc>& tree);
[[nodiscard]] std::string zsh_script(const std::vector<CommandDoc>& tree);
[[nodiscard]] std::string fish_script(const std::vector<CommandDoc>& tree);
}  // namespace completion

/// The completion script for bash, zsh or fish, generated from the tree; empty for another shell.
[[nodiscard]] std::string completion_script(const std::vector<CommandDoc>& tree,
                                            std::string_view shell);

/// The same script for a program that is installed under another name than "sbx": it completes and calls that name,
/// and its functions don't collide with those of another program.
[[nodiscard]] std::string for_program(std::string_view script, std::string_view program);

}  // namespace sbx::cli
