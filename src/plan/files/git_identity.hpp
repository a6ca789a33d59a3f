#pragma once

#include <string>
#include <string_view>

namespace sbx::plan {

/// True for the files with a user's git settings, by their path below the home directory.
[[nodiscard]] bool is_git_settings(std::string_view path_below_home);

/// The author settings of a git-config(1) file: user.name, user.email and init.defaultBranch. The
/// rest stays outside: it holds tokens, and names programs (editors, signing keys, credential
/// helpers) that don't exist inside.
[[nodiscard]] std::string git_identity(std::string_view git_config);

}  // namespace sbx::plan
