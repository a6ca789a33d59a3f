#pragma once

#include <string>
#include <vector>

#include "plan/files/steps.hpp"
#include "plan/plan.hpp"

namespace sbx::plan {

/// What operands lead to.
struct Program {
  std::vector<std::string> command;  ///< argv
  std::string executable;            ///< inside
  InterpreterFacts interpreter;
  std::vector<Mount> steps;                  ///< what the program needs and is not yet visible
  std::vector<std::string> bin_directories;  ///< inside; go in front of PATH
  std::vector<std::string> explanations;
  std::vector<std::string> notes;  ///< lines for stderr
};

}  // namespace sbx::plan
