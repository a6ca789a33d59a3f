#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Names through which programs of the host could be made to run or trust something without being
/// told to. They are read-only in live grants, and are brought out only if named one by one. The
/// case of their letters doesn't count: on some file systems ".GIT/Hooks" is ".git/hooks".
namespace sbx::plan {

/// Why `name` in the directory `directory` (a path, of which the last names count) is protected:
/// ".git/hooks", ".envrc",
/// ".vscode". Empty if it isn't.
[[nodiscard]] std::string_view reason_to_protect(std::string_view directory, std::string_view name);

/// The same, and a ".git" that is not a directory: such a file or link directs git to a repository,
/// and to hooks, that somebody else chose.
[[nodiscard]] std::string_view reason_to_guard(std::string_view directory, std::string_view name,
                                               bool is_directory);

/// ".git/modules", or that of a worktree, ".git/worktrees/NAME/modules"; in letters of any case.
[[nodiscard]] bool holds_submodules(std::string_view directory, std::string_view name);
/// Why a name below .git/modules is protected, for what leaves a sandbox: live grants seal all of
/// .git/modules. `above`: the names between "modules" and this one. A submodule may have any name,
/// also one with slashes, so what git would take settings, hooks or other directories from is
/// protected wherever it stands. Empty if it isn't.
[[nodiscard]] std::string_view reason_in_modules(std::span<const std::string> above,
                                                 std::string_view name, bool is_directory);

/// ".git", in letters of any case.
[[nodiscard]] bool is_dot_git(std::string_view name);
/// A directory from which git takes what to do: .git itself, or .git/worktrees/NAME.
[[nodiscard]] bool is_repository(std::string_view directory, std::string_view name);
/// "config" or "config.worktree", in letters of any case.
[[nodiscard]] bool has_settings_name(std::string_view name);

/// Files and directories that sbx makes in a .git of a live grant, so that there is something to
/// seal: git takes them as if they were not there.
struct Placeholder {
  std::string_view name;
  std::string_view content{};  ///< of a file
  bool is_directory = false;
  bool of_worktree = false;  ///< in .git/worktrees/NAME too
};
[[nodiscard]] std::span<const Placeholder> placeholders();

/// The text of a git configuration without passwords and tokens; empty if it contains none.
[[nodiscard]] std::optional<std::string> without_credentials(std::string_view git_config);

}  // namespace sbx::plan
