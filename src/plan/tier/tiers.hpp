#pragma once

#include "plan/tier/tier.hpp"

namespace sbx::plan {

/// The tier of a run.
[[nodiscard]] const Tier& choose_tier();

}  // namespace sbx::plan
