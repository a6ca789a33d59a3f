#pragma once

#include <string>
#include <vector>

#include "plan/program/program.hpp"

/// Resolves operands to the program that is executed.
namespace sbx::plan {

/// Finds script, interpreter or command by reading files only, and adds what its steps show to
/// `view`. `system_root` as in system_steps(); `working_directory` is inside. Errors: usage, policy
/// (interpreters.allow), not_found, not_executable.
[[nodiscard]] Result<Program> resolve_program(const policy::Policy& policy, const host::Host& host,
                                              const RunRequest& request,
                                              const std::string& system_root,
                                              const std::string& working_directory, View& view);

/// The interpreters of all languages that this caller's PATH has, for a held sandbox whose calls
/// are not known yet. What can't be shown is left out. Errors: policy (interpreters.venv).
[[nodiscard]] Result<Program> show_interpreters(const policy::Policy& policy,
                                                const host::Host& host, const RunRequest& request,
                                                const std::string& system_root,
                                                const std::string& working_directory, View& view);

}  // namespace sbx::plan
