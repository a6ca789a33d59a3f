#pragma once

#include <string>
#include <vector>

#include "plan/files/steps.hpp"
#include "plan/plan.hpp"

/// Resolves operands to the program that is executed.
namespace sbx::plan {

struct Program {
  std::vector<std::string> command;  ///< argv
  std::string executable;            ///< inside
  InterpreterFacts interpreter;
  std::vector<Mount> steps;              ///< what the program needs and is not yet visible
  std::vector<std::string> bin_folders;  ///< inside; go in front of PATH
  std::vector<std::string> explanations;
  std::vector<std::string> notes;  ///< lines for stderr
};

/// Finds script, interpreter or command by reading files only, and adds what its steps show to `view`. `system_root`
/// as in system_steps(); `working_directory` is inside. Errors: usage, policy (interpreters.allow), not_found,
/// not_executable.
[[nodiscard]] Result<Program> resolve_program(const policy::Policy& policy, const host::Host& host,
                                              const RunRequest& request,
                                              const std::string& system_root,
                                              const std::string& working_directory, View& view);

}  // namespace sbx::plan
