#pragma once

#include <string>
#include <vector>

#include "workspace/changes.hpp"

namespace sbx::workspace {

/// What of a change set is to be applied, and what stays out of it before anything is tried.
struct Selection {
  std::vector<Change> changes;
  std::vector<Left> left;
  Links links;  ///< of all changes; none leads to a policy file
};
/// No patterns mean everything. Protected names must be named one by one.
[[nodiscard]] Selection select(const Copy& copy, const ChangeSet& changes,
                               const std::vector<std::string>& patterns,
                               const std::vector<std::string>& policy_files);

/// Patterns that mean no change of the set: mistyped, perhaps.
[[nodiscard]] std::vector<std::string> without_meaning(const ChangeSet& changes,
                                                       const std::vector<std::string>& patterns);

}  // namespace sbx::workspace
