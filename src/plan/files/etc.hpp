#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/files/deny.hpp"
#include "plan/files/steps.hpp"

namespace sbx::plan {

/// How small files of the machine's /etc are shown: without mounts, no copy is made of them.
enum class SmallFiles : std::uint8_t { copied, bound };

/// /etc: synthetic files, and those of the system that programs need and that are not sensitive.
/// What is denied is left out.
[[nodiscard]] std::vector<Mount> etc_steps(const host::Host& host, const std::string& system_root,
                                           const policy::Policy& policy, const DenyRules& denials,
                                           SmallFiles small);

}  // namespace sbx::plan
