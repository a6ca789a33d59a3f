#pragma once

#include <optional>
#include <string>
#include <string_view>

/// Names through which the host's programs could be made to run or trust something. They are read-only in live
/// grants, and are brought out only if named one by one.
namespace sbx::plan {

/// True if `name` in a directory called `folder_name` is protected: ".git/hooks", ".envrc", ".bashrc", ".vscode".
[[nodiscard]] bool is_protected(std::string_view folder_name, std::string_view name);

/// The same, and a ".git" that is no directory: such a file or link directs git to a repository, and to hooks, that
/// somebody else chose.
[[nodiscard]] bool is_guarded(std::string_view folder_name, std::string_view name, bool is_folder);

/// The text of a git configuration without passwords and tokens; empty if it contains none.
[[nodiscard]] std::optional<std::string> without_credentials(std::string_view git_config);

}  // namespace sbx::plan
