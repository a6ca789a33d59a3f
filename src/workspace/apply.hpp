#pragma once

#include <functional>
#include <string>
#include <vector>

#include "workspace/changes.hpp"

/// `--apply`: makes the changes of a run in the directory of the host.
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

/// Patterns that mean no change of the set: mistyped, perhaps.
[[nodiscard]] std::vector<std::string> without_meaning(const ChangeSet& changes,
                                                       const std::vector<std::string>& patterns);

struct Applied {
  std::vector<Change> done;
  std::vector<Left> conflicts;  ///< the host's file changed since the run began: it stays
  std::vector<Left> left;
  bool stopped = false;  ///< `stop` returned true: the rest is in `left`
};

struct Applying {
  std::function<void()> waits;  ///< called before waiting for another sbx that applies there
  std::function<bool()> stop;   ///< asked before each change: true leaves the rest undone
};

/// File by file: each is its old or its new self at every moment. What is as it should be already is
/// done, so that an application that was killed can be finished. Waits while another run applies to
/// the same directory; removes what one that was killed left there. Errors: host (nothing was done).
[[nodiscard]] Result<Applied> apply(const Copy& copy, const Selection& selection,
                                    const Applying& how = {});

/// What would be a conflict now. Nothing is written.
[[nodiscard]] std::vector<Left> conflicts_now(const Copy& copy, const std::vector<Change>& changes);

}  // namespace sbx::workspace
