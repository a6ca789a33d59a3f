#pragma once

#include <cstddef>
#include <string>

#include "base/json.hpp"
#include "base/result.hpp"
#include "client/facts.hpp"
#include "run/launch.hpp"

namespace sbx::agent {

/// What the operator has chosen. Nothing that a client says changes it.
struct Options {
  run::Request start;            ///< of the session; its owner is added
  std::string session;           ///< --session; empty: one of its own
  bool shares_contexts = false;  ///< --shared-context
  std::size_t max_text = 20'000;
  std::string log{};           ///< --log; empty: none
  bool allows_apply = false;   ///< --allow-apply
  bool is_structured = false;  ///< --structured
  int parent = -1;             ///< a pidfd: the server ends when that process does
};

/// What is known from the start on.
struct Facts : client::Facts {
  bool allows_apply = false;
  bool is_structured = false;
  std::size_t max_text = 0;
};
/// Errors: those of the policy and of the plan.
[[nodiscard]] Result<Facts> facts_of(const Options& options);

/// For the model, when it connects; the first sentences count most.
[[nodiscard]] std::string instructions_of(const Facts& facts);
/// The text of the tool get_policy.
[[nodiscard]] std::string policy_text(const Facts& facts);

}  // namespace sbx::agent
