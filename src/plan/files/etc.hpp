#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/files/steps.hpp"

namespace sbx::plan {

/// How small files of the machine's /etc are shown: without mounts, no copy is made of them.
enum class SmallFiles : std::uint8_t { copied, bound };

/// /etc: synthetic files, and those of the system that programs need and that are not sensitive.
/// `user`: the name of uid 1000.
[[nodiscard]] std::vector<Mount> etc_steps(const host::Host& host, const std::string& system_root,
                                           policy::NetworkMode network, const std::string& user,
                                           SmallFiles small);

}  // namespace sbx::plan
