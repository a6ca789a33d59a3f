#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/files/deny.hpp"
#include "plan/files/steps.hpp"

namespace sbx::plan {

/// What a held sandbox shows, for the plans of its calls.
struct Sight {
  Sight(std::vector<DenyRule> rules, const host::Files* files)
      : denials(std::move(rules), files), view(denials) {}
  DenyRules denials;
  View view;
  std::string system_root;                   ///< as in system_steps()
  std::vector<std::string> bin_directories;  ///< inside; go in front of PATH
  /// --env and the like of the start: every call has them.
  std::vector<std::pair<std::string, std::string>> environment;
};

}  // namespace sbx::plan
