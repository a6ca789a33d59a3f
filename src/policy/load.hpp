#pragma once

#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "policy/context.hpp"
#include "policy/locate.hpp"
#include "policy/policy.hpp"
#include "policy/write.hpp"

namespace sbx::policy {

/// Reads, merges and validates: key defaults, `extends`, each file, each override. Reads only the
/// named files.
[[nodiscard]] std::expected<Policy, Findings> load(const std::vector<PolicyOperand>& policies,
                                                   const std::vector<Override>& overrides,
                                                   const LoadContext& context);

/// The policy with overrides that only narrow it, as below a locked one. `sealed_by` names in
/// messages what a wider value would have to be changed for.
[[nodiscard]] std::expected<Policy, Findings> narrow(const Policy& policy,
                                                     const std::vector<Override>& overrides,
                                                     const std::string& sealed_by);

/// Parses one self-contained text (no file access but `extends` of built-ins); for tests, `check`
/// and fuzzing.
[[nodiscard]] std::expected<Policy, Findings> parse_text(std::string_view text,
                                                         std::string_view file_name,
                                                         const LoadContext& context);

}  // namespace sbx::policy
