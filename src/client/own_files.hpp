#pragma once

#include <span>
#include <string>

#include "base/result.hpp"
#include "host/host.hpp"
#include "plan/plan.hpp"
#include "policy/policy.hpp"

namespace sbx::client {

/// What the operator of a front end has chosen beside the policy.
struct Operator {
  bool applies = false;  ///< its users write changes to the workspace's directory on the host
  std::string log{};     ///< a file; empty: there is none
  /// Of files that start the front end: below a project, the home, or what programs write.
  std::span<const char* const> registrations{};
};

/// A program that changes its walls, or how its front end is started, has them the next time.
/// `applied`: the source of what is applied to; empty: nothing. Errors: policy "own-file-writable".
[[nodiscard]] Status check_own_files(const plan::Plan& plan, const policy::Policy& policy,
                                     const host::Host& host, const std::string& applied,
                                     const Operator& chosen);

}  // namespace sbx::client
