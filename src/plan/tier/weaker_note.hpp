#pragma once

#include <string>

#include "plan/plan.hpp"

/// The one line of a run with weaker isolation, which is never silent by habit.
namespace sbx::plan {

void add_to_weaker_note(const std::string& more, Plan& plan);

}  // namespace sbx::plan
