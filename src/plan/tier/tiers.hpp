#pragma once

#include "plan/tier/tier.hpp"

namespace sbx::plan {

/// The tier of a run. `steps_down`: this machine has refused the stronger ones (`auto`).
[[nodiscard]] const Tier& choose_tier(policy::Isolation isolation, bool steps_down);

[[nodiscard]] const Tier& tier_of(TierKind kind);

}  // namespace sbx::plan
