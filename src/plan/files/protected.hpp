#pragma once

#include <optional>
#include <string>
#include <string_view>

/// Names by which a program of the host could be made to run or trust something: read-only in live grants, and never
/// brought out unless named one by one.
namespace sbx::plan {

/// Whether `name` in a folder called `folder_name` is protected: ".git/hooks", ".envrc", ".bashrc", ".vscode".
[[nodiscard]] bool is_protected(std::string_view folder_name, std::string_view name);

/// The same, and ".git" where it is no folder: such a file or link sends git to a folder, and to hooks, of somebody
/// else's choice.
[[nodiscard]] bool is_guarded(std::string_view folder_name, std::string_view name, bool is_folder);

/// The text of a git configuration without passwords and tokens; nothing when it holds none.
[[nodiscard]] std::optional<std::string> without_credentials(std::string_view git_config);

}  // namespace sbx::plan
