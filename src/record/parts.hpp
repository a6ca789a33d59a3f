#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/json.hpp"
#include "policy/policy.hpp"

/// What the records of runs and of cells have in common.
namespace sbx::record {

/// The rule that set a budget: `limits.wall_time = "60s" (default.toml:93)`. Null without a policy.
[[nodiscard]] Json rule_of(const std::optional<policy::Policy>& policy, const std::string& limit,
                           const std::string& output_key = "output.exceed");
/// The option that set `key`, "--timeout"; empty where a policy or a default did.
[[nodiscard]] std::string option_that_set(const policy::Policy* policy, const std::string& key);
[[nodiscard]] Json policy_json(const std::optional<policy::Policy>& policy);
[[nodiscard]] Json stream_json(const Stream& stream);
[[nodiscard]] Json denials_json(const std::vector<Denial>& denials);
[[nodiscard]] Json limits_met_json(const std::vector<LimitMet>& limits,
                                   const std::optional<policy::Policy>& policy);
[[nodiscard]] Json hints_json(const std::vector<Hint>& hints);
/// Allowed destinations that were not reached.
[[nodiscard]] Json failures_json(const std::vector<NetworkFailure>& failures);
/// Back from a record of a run or a cell, which is untrusted input.
[[nodiscard]] std::vector<Denial> denials_of(const Json& record);
[[nodiscard]] std::vector<NetworkFailure> failures_of(const Json& record);
[[nodiscard]] std::vector<Hint> hints_of(const Json& record);
/// A member of an object; null where there is none.
[[nodiscard]] const Json& part(const Json& object, const char* key);
[[nodiscard]] Json write_error_json(const WriteError& error);
[[nodiscard]] Json degraded_json(const std::vector<Degraded>& degraded);

}  // namespace sbx::record
