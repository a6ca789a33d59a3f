#pragma once

#include <string>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// Folders of sbx's own that outlive a run, below host::state_folder().
namespace sbx::workspace {

enum class Missing : bool { is_an_error, is_made };

/// The state folder itself. Errors: as below, of open_state() with a part.
[[nodiscard]] Result<UniqueFd> open_state(const std::string& state_folder, Missing missing);

/// Makes it where the program could, for a grant holds its place. Errors: host "no-state-folder".
[[nodiscard]] Status make_state_reserved(const std::string& state_folder);

/// The folder `part` of the state folder: the caller's, closed to everybody else (0700). Errors:
/// host "no-state-folder" (no home, somebody else's, no room); with ENOENT when it is missing and
/// not to be made.
[[nodiscard]] Result<UniqueFd> open_state(const std::string& state_folder, const std::string& part,
                                          Missing missing);

}  // namespace sbx::workspace
