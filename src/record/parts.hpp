#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/json.hpp"
#include "policy/policy.hpp"
#include "protocol/cell_record.hpp"

/// What the records of runs and of cells have in common.
namespace sbx::record {

/// The rule that set a budget: `limits.wall_time = "60s" (default.toml:93)`. Empty without a
/// policy.
[[nodiscard]] std::string rule_of(const std::optional<policy::Policy>& policy,
                                  const std::string& limit,
                                  const std::string& output_key = "output.exceed");
/// The option that set `key`, "--timeout"; empty where a policy or a default did.
[[nodiscard]] std::string option_that_set(const policy::Policy* policy, const std::string& key);
[[nodiscard]] std::optional<protocol::PolicyFacts> policy_facts(
    const std::optional<policy::Policy>& policy);
[[nodiscard]] protocol::StreamFacts stream_facts(const Stream& stream);
[[nodiscard]] std::vector<protocol::LimitMetFacts> limits_met_facts(
    const std::vector<LimitMet>& limits, const std::optional<policy::Policy>& policy);
[[nodiscard]] protocol::WriteErrorFacts write_error_facts(const WriteError& error);
[[nodiscard]] Json policy_json(const std::optional<policy::Policy>& policy);
/// Back from a record of a run or a cell, which is untrusted input.
[[nodiscard]] std::vector<Denial> denials_of(const Json& record);
[[nodiscard]] std::vector<NetworkFailure> failures_of(const Json& record);
[[nodiscard]] std::vector<Hint> hints_of(const Json& record);
/// A member of an object; null where there is none.
[[nodiscard]] const Json& part(const Json& object, const char* key);

}  // namespace sbx::record
