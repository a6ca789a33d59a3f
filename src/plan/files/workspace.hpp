#pragma once

#include <string>

#include "plan/files/grants.hpp"

namespace sbx::plan {

/// The workspace: its grant, the working directory inside, and notes about it.
struct WorkspaceChoice {
  Grant grant;
  std::string working_directory;
  std::string note;
};
/// `home`: inside. Errors: policy "unfit-workspace", "missing-workspace".
[[nodiscard]] Result<WorkspaceChoice> choose_workspace(const host::Host& host,
                                                       const policy::Workspace& workspace,
                                                       const std::string& home,
                                                       const DenyRules& denials);

/// An empty directory in its place would hide files that programs need.
[[nodiscard]] bool is_system_directory(const std::string& directory);

}  // namespace sbx::plan
