#pragma once

#include <optional>
#include <string>

#include "policy/policy.hpp"
#include "policy/reading.hpp"

namespace sbx::policy {

/// Reads one [[syscalls.rule]]; nothing when it is wrong, which is reported.
[[nodiscard]] std::optional<SyscallRule> read_rule(const Node& node, Reading& reading);
/// One system-call rule as an inline table.
[[nodiscard]] std::string rule_toml(const SyscallRule& rule);

}  // namespace sbx::policy
