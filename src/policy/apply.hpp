#pragma once

#include <cstdint>

#include "policy/keys.hpp"
#include "policy/reading.hpp"

namespace sbx::policy {

/// What a list does to the entries of weaker layers.
enum class ListMode : std::uint8_t { append, replace };

/// Sets one key from a node. What is wrong is reported, and the policy keeps what it had.
void apply(const Key& key, const Node& value, ListMode mode, Reading& reading, Policy& policy);
/// Every key at its default.
[[nodiscard]] Policy initial_policy();

}  // namespace sbx::policy
