#pragma once

#include <string>

namespace sbx::cli {

/// The JSON Schema (draft 7) of policies, generated from the key table; schema/sbx.policy.1.json.
[[nodiscard]] std::string policy_schema();

}  // namespace sbx::cli
