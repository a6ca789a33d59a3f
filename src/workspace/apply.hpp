#pragma once

#include <string>
#include <vector>

#include "workspace/changes.hpp"

/// `--apply`: does to the folder of the host what a run did to its copy.
namespace sbx::workspace {

/// What of a change set is to be applied, and what stays out of it before anything is tried.
struct Selection {
  std::vector<Change> changes;
  std::vector<Left> left;
};
/// No patterns mean everything. Protected names must be named one by one.
[[nodiscard]] Selection select(const Copy& copy, const ChangeSet& changes,
                               const std::vector<std::string>& patterns,
                               const std::vector<std::string>& policy_files);

struct Applied {
  std::vector<Change> done;
  std::vector<Left> conflicts;  ///< the host's file changed since the run began: it stays
  std::vector<Left> left;
};

/// File by file: each is its old or its new self at every moment. Waits while another run applies
/// to the same folder. Errors: host (nothing was done).
[[nodiscard]] Result<Applied> apply(const Copy& copy, const Selection& selection);

}  // namespace sbx::workspace
