#pragma once

#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/json.hpp"
#include "plan/plan.hpp"
#include "policy/policy.hpp"
#include "run/launch.hpp"

/// The record of a run as JSON: schema "sbx.run/1", schema/sbx.run.1.json, sbx-record(5).
namespace sbx::record {

/// One line of JSON with its newline; always valid UTF-8.
[[nodiscard]] std::string record_text(const run::Request& request, const run::Answer& answer);

/// Its "outcome".
[[nodiscard]] Json outcome_json(const run::Answer& answer);

/// Its "limits".
[[nodiscard]] Json limits_json(const plan::Plan& plan);

/// The plan for `--dry-run --json`, from an answer with policy and plan: schema "sbx.plan/1".
[[nodiscard]] std::string plan_text(const run::Answer& answer);

/// Names of the program's variables; the values may be secrets and are never printed.
[[nodiscard]] std::vector<std::string> variable_names(const plan::Plan& plan);

}  // namespace sbx::record
