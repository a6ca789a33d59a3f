#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/plan.hpp"

/// What a plan lets the program do (plan/access.hpp), in the kernel's terms.
namespace sbx::spawn {

/// MOUNT_ATTR_*, mount_setattr(2).
[[nodiscard]] std::uint64_t mount_attributes(const plan::Rights& rights);

struct LandlockRule {
  std::string_view path;  ///< of the plan
  std::uint64_t rights;   ///< only those that the plan's ABI and the type of the path have
};
/// The rules of the second wall, landlock(7). They add up on the way from the root, so an access
/// that allows no more than the root's needs none.
[[nodiscard]] std::vector<LandlockRule> landlock_rules(const plan::Plan& plan);

}  // namespace sbx::spawn
