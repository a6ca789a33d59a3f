#pragma once

#include "base/result.hpp"
#include "cli/session_asker.hpp"

/// The commands of contexts.
namespace sbx::cli {

[[nodiscard]] Result<int> list_contexts(const SessionAsker& asker);
[[nodiscard]] Result<int> open_context(const SessionAsker& asker);
[[nodiscard]] Result<int> close_context(const SessionAsker& asker);
[[nodiscard]] Result<int> interrupt_contexts(const SessionAsker& asker);
[[nodiscard]] Result<int> restart_contexts(const SessionAsker& asker);

}  // namespace sbx::cli
