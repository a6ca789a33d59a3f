#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "workspace/changes.hpp"

namespace sbx::workspace {

/// The path of a directory .git/worktrees/NAME.
[[nodiscard]] bool is_worktree(const std::string& path);

/// Linked worktrees of git that a change set adds or removes. What leads git to one is protected
/// and what it holds is not, so they are brought out whole or not at all: .git/worktrees/NAME, and
/// the directory that it belongs to.
class Worktrees {
 public:
  /// Those whose .git/worktrees/NAME one of the patterns names stay in.
  Worktrees(const Copy& copy, const ChangeSet& changes, const std::vector<std::string>& patterns);

  /// The outermost path of a worktree that stays out and holds this path; empty: none does.
  [[nodiscard]] std::string holder_of(const std::string& path) const;
  /// For the path that holder_of() gave.
  [[nodiscard]] Left left(const std::string& holder) const;

 private:
  std::unordered_set<std::string> added_;    ///< .git/worktrees/NAME
  std::unordered_set<std::string> removed_;  ///< the same
  std::unordered_set<std::string> trees_;    ///< their directories, where the workspace has them
};

}  // namespace sbx::workspace
