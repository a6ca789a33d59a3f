#pragma once

#include "base/result.hpp"
#include "cli/session_asker.hpp"

/// The commands of what calls have written over the workspace.
namespace sbx::cli {

/// `texts`: of files, too.
[[nodiscard]] Result<int> show_changes(const SessionAsker& asker, bool texts);
[[nodiscard]] Result<int> apply_session(const SessionAsker& asker);
[[nodiscard]] Result<int> keep_session(const SessionAsker& asker);

}  // namespace sbx::cli
