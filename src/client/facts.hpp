#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "client/own_files.hpp"
#include "host/host.hpp"
#include "policy/policy.hpp"
#include "protocol/answers.hpp"
#include "run/launch.hpp"

namespace sbx::client {

/// What a front end can say of its sessions before one starts.
struct Facts {
  host::Host host;
  policy::Policy policy;
  std::vector<std::string> languages;  ///< of cells, whose interpreters were found
  std::string shell;                   ///< that runs a command
  std::string directory;               ///< where commands run, as they see it
  std::vector<std::string> writable;   ///< paths as programs see them
  std::vector<std::string> readable;   ///< the same, that the policy names
  std::vector<std::string> variables;  ///< names of those that the operator has set
  std::vector<std::string> weaker;     ///< rules that are enforced by weaker means, or not at all
  bool reaches_network = false;
  bool is_live = false;   ///< programs change the operator's own directory
  bool is_copy = false;   ///< the working directory is copy-on-write
  bool is_empty = false;  ///< the working directory shows nothing of the host
};

/// `start`: of the sessions. Errors: those of the policy, of the plan, and of check_own_files().
[[nodiscard]] Result<Facts> facts_of(run::Request start, const Operator& chosen);

/// A session that somebody else has started is under the same rules: what the facts say of it is
/// true, and the operator's own files lie as safe. Errors: usage "other-policy", "other-directory".
[[nodiscard]] Status check_same(const Facts& facts, const protocol::SessionFacts& joined);

}  // namespace sbx::client
