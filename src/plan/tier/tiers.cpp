#include "plan/tier/tiers.hpp"

#include <array>

#include "plan/enforcement.hpp"
#include "plan/tier/landlock.hpp"
#include "plan/tier/landlock_checks.hpp"
#include "plan/tier/landlock_notes.hpp"
#include "plan/tier/live.hpp"
#include "plan/tier/namespaces.hpp"

namespace sbx::plan {
namespace {

constexpr std::array kAllNamespaces{Namespace::user,  Namespace::mount, Namespace::pid,
                                    Namespace::net,   Namespace::ipc,   Namespace::uts,
                                    Namespace::cgroup};

/// Strongest first.
constexpr std::array<Tier, kTierCount> kTiers{{
    {.kind = TierKind::namespaces,
     .name = "namespaces",
     .form = {},
     .namespaces = kAllNamespaces,
     .lay_out = lay_out_mounts,
     .note_weaker = note_machine},
    {.kind = TierKind::landlock,
     .name = "landlock",
     .form = "own-uid",
     .namespaces = {},
     .lay_out = lay_out_rules,
     .note_weaker = note_landlock},
    {.kind = TierKind::same_uid,
     .name = "landlock",
     .form = "same-uid",
     .namespaces = {},
     .lay_out = lay_out_rules,
     .note_weaker = note_landlock},
}};

}  // namespace

const Tier& choose_tier(const policy::Policy& policy, const host::Host& host) {
  const policy::Isolation isolation = policy.isolation.value;
  const bool steps_down = isolation == policy::Isolation::landlock ||
                          (isolation == policy::Isolation::automatic && host.refuses_namespaces);
  if (!steps_down) return tier_of(TierKind::namespaces);
  const bool needs_callers = wants_live_grant(policy) && serves_callers_uid(host);
  return tier_of(host.changes_ids && !needs_callers ? TierKind::landlock : TierKind::same_uid);
}

const Tier* tier_instead(const Error& error, const host::Host& host) {
  const bool helps = error.retry == Retry::with_callers_uid && serves_callers_uid(host);
  return helps ? &tier_of(TierKind::same_uid) : nullptr;
}

const Tier& tier_of(TierKind kind) {
  return kTiers[static_cast<std::size_t>(kind)];
}

}  // namespace sbx::plan
