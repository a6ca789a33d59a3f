#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"

/// What this machine can't do of what was asked.
namespace sbx::plan {

/// Landlock's scopes for signals and abstract sockets came with ABI 6 (Linux 6.12).
inline constexpr int kLandlockScopes = 6;

/// Whether the program writes into folders of the host for real.
[[nodiscard]] bool has_live_grant(const Plan& plan);

/// Takes the right to make FIFOs and sockets from what a live grant without `special` lies in: rules
/// of Landlock add up on the way from the root, so that what may be made above may be made below.
void keep_special_files_out(Plan& plan);
/// Moves TMPDIR out of /tmp where that takes no sockets: programs make theirs there.
void move_temporary_files(Plan& plan);
/// There is a live grant without `special`, and Landlock can't keep FIFOs and sockets out of it.
[[nodiscard]] bool special_files_reach_host(const Plan& plan);

/// Adds to `degraded` the second walls that are missing here.
void note_machine(const host::Host& host, Plan& plan);

/// Checks --require against everything that is degraded.
/// Errors: usage "unknown-requirement", host "requirement-not-met".
[[nodiscard]] Status check_requirements(const std::vector<std::string>& required, const Plan& plan);

}  // namespace sbx::plan
