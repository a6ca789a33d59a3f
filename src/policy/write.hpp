#pragma once

#include <string>
#include <vector>

#include "policy/keys.hpp"

namespace sbx::policy {

/// The policy as complete TOML, every key written; `parse_text(write(p))` has the same rules.
[[nodiscard]] std::string write(const Policy& policy);

/// What `write` gives, with "~" for the home directory where the policy default is a part of it:
/// the same for every account, so that its hash names the rules.
[[nodiscard]] std::string write_for_hash(const Policy& policy);

/// One entry of a list as TOML.
[[nodiscard]] std::string entry_toml(const std::string& text);
[[nodiscard]] std::string entry_toml(const PathGrant& grant);
[[nodiscard]] std::string entry_toml(const SyscallRule& rule);

/// The key's default as TOML.
[[nodiscard]] std::string initial_toml(const Key& key);

/// One value of a key with its place: a scalar has one, a list or table one for each entry.
struct SaidValue {
  std::string name;  ///< of a table's member, as TOML writes it; else empty
  std::string toml;
  Origin at;
};
[[nodiscard]] std::vector<SaidValue> said_values(const Key& key, const Policy& policy);

/// A key's value on one line or several, as `write` writes it.
[[nodiscard]] std::string value_toml(const Key& key, const Policy& policy);

/// True when both policies have the same rules, wherever the lines are.
[[nodiscard]] bool same_rules(const Policy& left, const Policy& right);

}  // namespace sbx::policy
