#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cgroup/group.hpp"
#include "cgroup/hierarchies.hpp"
#include "cgroup/scope.hpp"

namespace sbx::cgroup {

/// What a run has to keep its budgets with.
struct Acquired {
  host::ControlGroup facts;
  std::unique_ptr<Group> group;  ///< null: the budgets are polled
};

/// Makes the control group of one run: cgroup v2 where a subtree is delegated or the user's systemd
/// makes a scope, else, as root, cgroup v1. Chosen by doing. Begun early, so that what takes time
/// goes on beside the rest of a start; needs no privileges, and is never an error: the worst answer
/// is "polled", with the reason.
class Acquisition {
 public:
  [[nodiscard]] static Acquisition begin();
  /// Waits for the answer. Call once.
  [[nodiscard]] Acquired finish();

 private:
  [[nodiscard]] Acquired finish_unified();

  std::optional<ScopeRequest> scope_;
  Hierarchies hierarchies_;
  bool is_v1_ = false;
  std::string why_;  ///< not empty: polled, because of this
};

/// Removes the groups that a dead sbx left where this one would make its own. What can't be removed
/// stays.
void sweep_left_groups();

}  // namespace sbx::cgroup
