#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "policy/reading.hpp"

/// Single values: from nodes, and back to TOML.
namespace sbx::policy {

/// One read from a node, with its type, unit and range checked; a reported problem gives nothing.
template <class T>
[[nodiscard]] std::optional<T> read_value(const Key& key, const Node& node, Reading& reading);

/// Guesses the size in "512MB", "512 MiB" or "1g", in the form of a policy; nothing if that is not
/// possible.
[[nodiscard]] std::optional<std::string> meant_size(std::string_view text);
/// "30", "30 sec", "1 hour", "1m30s": the same for a time.
[[nodiscard]] std::optional<std::string> meant_duration(std::string_view text);

/// A scalar slot's value as TOML ("\"512M\"", "true", "1.5"); empty for lists and tables.
[[nodiscard]] std::string scalar_toml(const Key& key, const Slot& slot);
/// Sets a scalar from the table's own text. The table is right, so nothing can be wrong with it.
void set_initial(const Key& key, Policy& policy);

}  // namespace sbx::policy
