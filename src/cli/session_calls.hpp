#pragma once

#include "base/result.hpp"
#include "cli/session_asker.hpp"

/// The commands of calls that are under way or have ended.
namespace sbx::cli {

[[nodiscard]] Result<int> list_calls(const SessionAsker& asker);
[[nodiscard]] Result<int> show_log(const SessionAsker& asker);
[[nodiscard]] Result<int> wait_for_call(const SessionAsker& asker);
[[nodiscard]] Result<int> kill_call(const SessionAsker& asker);
[[nodiscard]] Result<int> send_to_call(const SessionAsker& asker);

}  // namespace sbx::cli
