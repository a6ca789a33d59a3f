#pragma once

#include <string>

#include "policy/policy.hpp"

namespace sbx::policy {

/// One system-call rule as an inline table.
[[nodiscard]] std::string rule_toml(const SyscallRule& rule);

}  // namespace sbx::policy
