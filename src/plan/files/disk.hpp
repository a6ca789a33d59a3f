#pragma once

#include "plan/plan.hpp"

/// Where the private disk lies, and whether the necessary copies fit on it.
namespace sbx::plan {

/// Numbers the overlays and copies of a finished list: each has a directory of its own on the
/// private disk.
void give_disk_places(std::vector<Mount>& mounts);
/// The directory of an overlay or copy on the private disk, with a slash at its end.
[[nodiscard]] std::string place_on_disk(const mount::Layered& layered);

/// Turns the writable overlays of a plan into copies; `why` is the reason.
void use_copies(Plan& plan, const std::string& why);

/// Chooses memory or a directory for the private disk. A directory is used if limits.disk_on asks
/// for it, if a copy is large, or if the kernel's tmpfs can't hold what an overlay writes
/// (before 6.6). Errors: policy "workspace-too-large".
[[nodiscard]] Status decide_disk(Plan& plan, policy::DiskOn asked, const host::Host& host);

}  // namespace sbx::plan
