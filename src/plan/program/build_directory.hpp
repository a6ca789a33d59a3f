#pragma once

#include <string>
#include <vector>

namespace sbx::plan {

/// The directory that the script of recipe_words() (recipes.hpp) makes, as a name in /tmp; empty if
/// the words of the command don't come from there.
[[nodiscard]] std::string build_directory_of(const std::vector<std::string>& command);
/// Where /tmp has another name.
void move_build_directory(std::vector<std::string>& command, const std::string& tmp);

}  // namespace sbx::plan
