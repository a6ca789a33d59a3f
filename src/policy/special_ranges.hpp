#pragma once

#include <span>
#include <string_view>

#include "policy/addresses.hpp"

/// Which addresses are not everybody's: IANA's special-purpose registries as one table, and the few
/// addresses that hand out credentials.
namespace sbx::policy {

/// What it takes to reach an address.
enum class Special : std::uint8_t {
  global,    ///< nothing but a rule
  reserved,  ///< not globally reachable: a name needs `private = true`, a prefix must lie inside
  exact,     ///< loopback and credentials of the machine: a rule with this very address
  never,     ///< no connection leads there
};

struct SpecialRange {
  Prefix prefix;
  Special special;
  std::string_view reason;    ///< "a private address"
  std::string_view registry;  ///< where it stands: "RFC 1918", "AWS"
};

/// Sorted so that a range stands before those that contain it.
[[nodiscard]] std::span<const SpecialRange> special_ranges();
/// The narrowest range that has the address, or null for a global one. An address that embeds a v4
/// one is also as special as that: see embedded_v4.
[[nodiscard]] const SpecialRange* special_range(const Address& address);
/// The narrowest range that has all of the prefix, or null.
[[nodiscard]] const SpecialRange* special_range(const Prefix& prefix);

}  // namespace sbx::policy
