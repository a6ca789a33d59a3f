#pragma once

#include <string>
#include <vector>

#include "host/host.hpp"

namespace sbx::plan {

/// The repository of a linked git worktree: the canonical path of the main repository's `.git`
/// directory, gitrepository-layout(5). Empty if `directory` is not a worktree.
///
/// A program may have written the worktree's `.git` file. So the repository must name this worktree
/// too, as git itself requires: the program can't write there, outside of the worktree.
[[nodiscard]] std::string worktree_repository(const host::Files& files,
                                              const std::string& directory);

/// Directories outside of `directory` without which git doesn't work in it: the repository of a
/// worktree, of a submodule, of a separate or linked `.git`, and the objects that it borrows from
/// another. Canonical paths. Files of the directory say where they are, and a program may have
/// written those: each is a git directory, or the objects of one.
[[nodiscard]] std::vector<std::string> git_elsewhere(const host::Files& files,
                                                     const std::string& directory);

/// The directory that contains the `.git` of `directory`: itself or one above; empty if there is
/// none.
[[nodiscard]] std::string repository_around(const host::Files& files, std::string directory);

}  // namespace sbx::plan
