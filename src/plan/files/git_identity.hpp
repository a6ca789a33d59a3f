#pragma once

#include <string>
#include <string_view>

namespace sbx::plan {

/// True for the files in which git keeps a person's settings, by their path below the home.
[[nodiscard]] bool is_git_settings(std::string_view path_below_home);

/// What a commit says about its author, of a git-config(1) file: user.name and user.email, and
/// init.defaultBranch. The rest stays outside: it holds tokens, and programs (editors, signing keys,
/// credential helpers) that are not there inside.
[[nodiscard]] std::string git_identity(std::string_view git_config);

}  // namespace sbx::plan
