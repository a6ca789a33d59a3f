#pragma once

#include <string>
#include <string_view>

namespace sbx::cli {

/// The completion script for bash, zsh or fish, which asks the program (complete.hpp); empty for
/// another shell.
[[nodiscard]] std::string_view completion_script(std::string_view shell);

/// The same script for a program that is installed under another name than "sbx": it completes and
/// calls that name, and its functions don't collide with those of another program.
[[nodiscard]] std::string for_program(std::string_view script, std::string_view program);

}  // namespace sbx::cli
