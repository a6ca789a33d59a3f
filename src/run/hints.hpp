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
};

/// After a failure: what the program may have met, with the option that would let it go on, as
/// notes and hints.
void add_hints(Outcome& outcome, const policy::Policy& policy, const plan::Plan& plan,
               const host::Host& all, const HintStyle& style);

/// What a cell lacked that raised an error, by the words of the error alone: nothing is looked for.
[[nodiscard]] std::vector<Hint> hints_after_cell(std::string_view error);
/// For a cell of a sandbox that shows no file: says so if the error is about one. Empty otherwise.
/// `how`: what the user does with an option.
[[nodiscard]] std::string note_after_cell(std::string_view error, std::string_view how);

}  // namespace sbx::run
