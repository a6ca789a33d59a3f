#pragma once

#include <string>

#include "host/host.hpp"

namespace sbx::plan {

/// The repository that a linked worktree of git belongs to: the canonical path of the main
/// repository's `.git` directory, gitrepository-layout(5). Empty where `folder` is no worktree.
///
/// A program may have written the worktree's `.git` file, so its word is not enough: the repository
/// must name this worktree too, as git itself asks. What it names lies outside of the worktree.
[[nodiscard]] std::string worktree_repository(const host::Files& files, const std::string& folder);

/// The directory that holds the `.git` of `folder`: itself or one above; empty where there is none.
[[nodiscard]] std::string repository_around(const host::Files& files, std::string folder);

}  // namespace sbx::plan
