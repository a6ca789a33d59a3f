#include "plan/tier/tiers.hpp"

#include <array>

#include "plan/enforcement.hpp"
#include "plan/tier/landlock.hpp"
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

const Tier& choose_tier(policy::Isolation isolation, const host::Host& host) {
  const bool steps_down = isolation == policy::Isolation::landlock ||
                          (isolation == policy::Isolation::automatic && host.refuses_namespaces);
  if (!steps_down) return tier_of(TierKind::namespaces);
  return tier_of(host.changes_ids ? TierKind::landlock : TierKind::same_uid);
}

const Tier& tier_of(TierKind kind) {
  return kTiers[static_cast<std::size_t>(kind)];
}

}  // namespace sbx::plan
