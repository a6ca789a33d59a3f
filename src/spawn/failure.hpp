#pragma once

#include <sbx/error.hpp>

#include "plan/plan.hpp"
#include "spawn/handshake.hpp"

/// Turns what a stage reported back into a sentence, the policy line and a cure.
namespace sbx::spawn {

[[nodiscard]] Error explain_failure(const plan::Plan& plan, const child::Progress& progress);
/// clone3 was refused: which setting or container is to blame, found by reading, never guessed from
/// versions.
[[nodiscard]] Error explain_clone_failure(int errno_value);

}  // namespace sbx::spawn
