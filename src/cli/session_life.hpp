#pragma once

#include "base/result.hpp"
#include "cli/session_asker.hpp"

/// The commands of whole sessions.
namespace sbx::cli {

[[nodiscard]] Result<int> list_sessions(const SessionAsker& asker);
[[nodiscard]] Result<int> stop_sessions(const SessionAsker& asker);
/// `stats`: what it uses, too.
[[nodiscard]] Result<int> show_session(const SessionAsker& asker, bool stats);
[[nodiscard]] Result<int> extend_session(const SessionAsker& asker);

}  // namespace sbx::cli
