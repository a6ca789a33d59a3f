#pragma once

#include "plan/tier/tier.hpp"

namespace sbx::plan {

/// The tier of a run. `auto` steps down only where this machine has refused namespaces; a uid of
/// the program's own comes before the caller's.
/// A live grant, which belongs to the caller, needs the caller's.
[[nodiscard]] const Tier& choose_tier(const policy::Policy& policy, const host::Host& host);

/// The one that a run steps over to where the first can't be, for this reason. Null: none.
[[nodiscard]] const Tier* tier_instead(const Error& error, const host::Host& host);

[[nodiscard]] const Tier& tier_of(TierKind kind);

}  // namespace sbx::plan
