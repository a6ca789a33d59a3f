#pragma once

#include <string>

#include "policy/policy.hpp"

namespace sbx::policy {

/// One entry of a list as TOML.
[[nodiscard]] std::string entry_toml(const std::string& text);
[[nodiscard]] std::string entry_toml(const PathGrant& grant);
[[nodiscard]] std::string entry_toml(const SyscallRule& rule);

}  // namespace sbx::policy
