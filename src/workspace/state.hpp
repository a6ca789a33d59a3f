#pragma once

#include <string>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// Directories of sbx's own that outlive a run, below host::state_directory().
namespace sbx::workspace {

enum class Missing : bool { is_an_error, is_made };

/// The state directory itself. Errors: as below, of open_state() with a part.
[[nodiscard]] Result<UniqueFd> open_state(const std::string& state_directory, Missing missing);

/// Makes the state directory, if a grant includes its place: otherwise the program could make it.
/// Errors: host "no-state-directory".
[[nodiscard]] Status make_state_reserved(const std::string& state_directory);

/// The directory `part` of the state directory: owned by the caller, closed to other users (0700).
/// Errors: host "no-state-directory" (no home, another owner, no room); with ENOENT when it is
/// missing and not to be made.
[[nodiscard]] Result<UniqueFd> open_state(const std::string& state_directory,
                                          const std::string& part, Missing missing);

}  // namespace sbx::workspace
