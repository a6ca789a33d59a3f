#pragma once

#include <string>

#include "host/host.hpp"

namespace sbx::plan {

/// The repository of a linked git worktree: the canonical path of the main repository's `.git` directory,
/// gitrepository-layout(5). Empty if `folder` is no worktree.
///
/// A program may have written the worktree's `.git` file. So the repository must name this worktree too, as git
/// itself requires: the program can't write there, outside of the worktree.
[[nodiscard]] std::string worktree_repository(const host::Files& files, const std::string& folder);

/// The directory that contains the `.git` of `folder`: itself or one above; empty if there is none.
[[nodiscard]] std::string repository_around(const host::Files& files, std::string folder);

}  // namespace sbx::plan
