#pragma once

#include <string>
#include <vector>

#include "plan/files/deny.hpp"
#include "plan/files/steps.hpp"
#include "plan/plan.hpp"

/// Workspace and granted paths.
namespace sbx::plan {

struct Places {
  std::vector<Mount> steps;  ///< shallow to deep
  std::string working_directory;
  std::vector<LiveDirectory> live;
  std::vector<std::string> live_in_memory;
  std::vector<std::string> live_on_overlay;
  std::vector<std::string> state_directories;
  std::vector<PlannedPlaceholder> placeholders;
  std::vector<Degraded> degraded;
  std::vector<std::string> notes;
  std::vector<std::string> explanations;
};

/// Resolves every grant and decides the mount steps. Adds what becomes visible to `view`. Errors:
/// policy (missing, forbidden, denied or contradicting grants), host.
[[nodiscard]] Result<Places> decide_places(const policy::Policy& policy, const host::Host& host,
                                           const DenyRules& denials, View& view);

}  // namespace sbx::plan
