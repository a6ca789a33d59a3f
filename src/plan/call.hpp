#pragma once

#include "plan/plan.hpp"
#include "plan/request.hpp"

namespace sbx::plan {

/// What a call executes.
enum class CallProgram : std::uint8_t {
  of_request,
  own,          ///< sbx itself: the request's operands are its words, and nothing is looked up
  interpreter,  ///< that of the request's language, with its operands as arguments: stays, without
                ///< a wall time
};

/// The plan of one call in a held sandbox: its files, network and budgets of the whole tree stay
/// the sandbox's. `policy` is the sandbox's, narrowed by the call's options.
///
/// What the calls before have done to files is known inside only. So a script or a path is given to
/// execve(2) first, and its interpreter by extension second; a plain name is a command on PATH,
/// never a file of the working directory that shadows one. Errors: usage, policy
/// (interpreters.allow), not_found.
[[nodiscard]] Result<Plan> make_call_plan(Plan plan, const policy::Policy& policy,
                                          const host::Host& host, const RunRequest& request,
                                          CallProgram kind = CallProgram::of_request);

}  // namespace sbx::plan
