#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sbx/outcome.hpp>

#include "hints/places.hpp"
#include "host/host.hpp"
#include "plan/plan.hpp"
#include "policy/policy.hpp"

namespace sbx::run {

struct HintStyle {
  const std::vector<std::string>& operands;  ///< what the user typed
  std::string_view how = "add";              ///< what the user does with an option
  hints::Reader reader = hints::Reader::unknown;
  bool of_cell = false;  ///< of code in an interpreter that stays; `operands`: a shell's alone
};

/// How a session's user adds an option.
inline constexpr std::string_view kAddToSession = "start the session with";

/// After a failure: what the program may have met, with the option that would let it go on, as
/// notes and hints.
void add_hints(Outcome& outcome, const policy::Policy& policy, const plan::Plan& plan,
               const host::Host& all, const HintStyle& style);

}  // namespace sbx::run
