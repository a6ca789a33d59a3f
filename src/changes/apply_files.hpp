#pragma once

#include <string>
#include <vector>

#include "changes/kept.hpp"
#include "workspace/apply.hpp"

namespace sbx::changes {

/// Applies the changes of exactly these files, for somebody who may not decide what a person
/// decides: no pattern, no directory's name means more than itself, and a protected name is refused
/// even where it is named, as is a symbolic link to one or to what is outside of the workspace. All
/// of them or none, as long as nobody else changes the directory meanwhile. `paths`: below the
/// workspace. Errors: usage, which names what is in the way; host.
[[nodiscard]] Result<workspace::Applied> apply_files(const Kept& kept,
                                                     const std::vector<std::string>& paths,
                                                     const std::string& state_directory);

}  // namespace sbx::changes
