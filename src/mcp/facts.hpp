#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "host/host.hpp"
#include "plan/plan.hpp"
#include "policy/policy.hpp"
#include "protocol/answers.hpp"
#include "run/launch.hpp"

namespace sbx::mcp {

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
struct Facts {
  host::Host host;
  policy::Policy policy;
  std::vector<std::string> languages;  ///< of cells, whose interpreters were found
  std::string shell;                   ///< that runs a command
  std::string directory;               ///< where commands run, as they see it
  std::vector<std::string> writable;   ///< paths as programs see them
  std::vector<std::string> readable;   ///< the same, that the policy names
  std::vector<std::string> weaker;     ///< rules that are enforced by weaker means, or not at all
  bool reaches_network = false;
  bool is_live = false;   ///< programs change the operator's own directory
  bool is_copy = false;   ///< the working directory is copy-on-write
  bool is_empty = false;  ///< the working directory shows nothing of the host
  bool allows_apply = false;
  bool is_structured = false;
  std::size_t max_text = 0;
};
/// Errors: those of the policy and of the plan.
[[nodiscard]] Result<Facts> facts_of(const Options& options);

/// A session that somebody else has started is under the same rules: what the tools say of it is
/// true, and the operator's own files lie as safe. Errors: usage "other-policy", "other-directory".
[[nodiscard]] Status check_same(const Facts& facts, const protocol::SessionFacts& joined);

/// For the model, when it connects; the first sentences count most.
[[nodiscard]] std::string instructions_of(const Facts& facts);
/// The text of the tool get_policy.
[[nodiscard]] std::string policy_text(const Facts& facts);

}  // namespace sbx::mcp
