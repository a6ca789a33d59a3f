#pragma once

#include <sbx/error.hpp>
#include <string>

#include "plan/plan.hpp"
#include "spawn/handshake.hpp"

/// Turns a stage's report into a message, the policy line and a fix.
namespace sbx::spawn {

[[nodiscard]] Error explain_failure(const plan::Plan& plan, const child::Progress& progress);
/// clone3 was refused: names the responsible setting or container, found by reading it and never
/// derived from versions.
[[nodiscard]] Error explain_clone_failure(int errno_value);
/// The cure for ENOSYS of a call that every kernel sbx runs on has: only a filter returns it.
[[nodiscard]] std::string filter_in_the_way();

}  // namespace sbx::spawn
