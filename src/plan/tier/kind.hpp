#pragma once

#include <cstddef>
#include <cstdint>

/// Names of the tiers, for the plan and for the child, which has a table of stages for each.
/// Child-safe.
namespace sbx {

/// A tier is one way to wall a program off: plan/tier/tier.hpp says in what they differ.
#define SBX_TIERS(TIER) TIER(namespaces) TIER(landlock) TIER(same_uid)

enum class TierKind : std::uint8_t {
#define SBX_TIER_ENUMERATOR(name) name,
  SBX_TIERS(SBX_TIER_ENUMERATOR)
#undef SBX_TIER_ENUMERATOR
};

// NOLINTNEXTLINE(bugprone-macro-parentheses): one summand of many
#define SBX_COUNT_TIER(name) +1
inline constexpr std::size_t kTierCount = 0 SBX_TIERS(SBX_COUNT_TIER);
#undef SBX_COUNT_TIER

}  // namespace sbx
