#pragma once

#include <string>
#include <vector>

#include "policy/policy.hpp"

namespace sbx::policy {

/// A value in force that this version of sbx has no mechanism for (column `missing` of the key
/// table).
struct NotYet {
  std::string key;
  Origin origin;
  std::string why;
  std::string instead;  ///< what stands in its place; empty for nothing
  bool from_user =
      false;  ///< a file or the command line asked for it, not a built-in or the key's default
};

/// In the order of the key table. Values that need no mechanism (an empty list, network.mode =
/// "none") are left out.
[[nodiscard]] std::vector<NotYet> not_yet(const Policy& policy);

}  // namespace sbx::policy
