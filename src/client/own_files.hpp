#pragma once

#include <span>
#include <string>

#include "base/result.hpp"
#include "host/host.hpp"
#include "plan/plan.hpp"
#include "policy/policy.hpp"

namespace sbx::client {

/// Files by which the operator says what a model may do, and how it is started.
struct OwnFiles {
  const plan::Plan& plan;  ///< what programs write is here
  const policy::Policy& policy;
  const host::Host& host;
  std::string applied;  ///< the source of what the model applies to; empty: it may not
  std::string log;      ///< empty: there is none
  std::span<const char* const>
      registrations;  ///< names below a project, the home, or what programs write
};

/// A program that changes its walls, or how its front end is started, has them the next time.
/// Errors: policy "own-file-writable".
[[nodiscard]] Status check_own_files(const OwnFiles& own);

}  // namespace sbx::client
