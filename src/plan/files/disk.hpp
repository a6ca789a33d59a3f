#pragma once

#include "plan/plan.hpp"

/// Where the private disk lies, and whether what must be copied onto it fits.
namespace sbx::plan {

/// Turns the writable overlays of a plan into copies: `why` says what stands against them.
void use_copies(Plan& plan, const std::string& why);

/// Memory, or a folder: asked for by limits.disk_on, or needed by a large copy or by a kernel whose
/// tmpfs can't hold what an overlay writes (before 6.6). Errors: policy "workspace-too-large".
[[nodiscard]] Status decide_disk(Plan& plan, policy::DiskOn asked, const host::Host& host);

}  // namespace sbx::plan
