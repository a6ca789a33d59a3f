#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "cli/invocation.hpp"
#include "plan/plan.hpp"
#include "policy/policy.hpp"
#include "workspace/apply.hpp"
#include "workspace/collect.hpp"
#include "workspace/kept.hpp"

/// The record of a run as JSON: schema "sbx.run/1", schema/sbx.run.1.json, sbx-record(5).
namespace sbx::cli {

/// What is known when the record is written; a set-up failure may know little.
struct RunFacts {
  std::string id;
  const Invocation* typed = nullptr;
  const policy::Policy* policy = nullptr;  ///< null: it could not be read
  const plan::Plan* plan = nullptr;        ///< null: no plan was made
  const Outcome* outcome = nullptr;        ///< null: nothing ran, `error` says why
  const Error* error = nullptr;
  const workspace::Collected* collected = nullptr;  ///< null: no --out
  const workspace::KeptFacts* kept = nullptr;       ///< null: nothing was kept
  const workspace::Applied* applied = nullptr;      ///< null: no --apply
};

/// One line of JSON and a newline, always valid UTF-8.
[[nodiscard]] std::string record_text(const RunFacts& facts);

/// The plan of `--dry-run --json`: schema "sbx.plan/1".
[[nodiscard]] std::string plan_text(const policy::Policy& policy, const plan::Plan& plan);

/// Names of the variables that the program gets; their values may be secrets and are never printed.
[[nodiscard]] std::vector<std::string> variable_names(const plan::Plan& plan);

/// "memory", "wall_time": as the record and the policy keys say.
[[nodiscard]] std::string budget_name(Budget budget);

}  // namespace sbx::cli
