#pragma once

#include <string>
#include <vector>

#include "plan/files/steps.hpp"

/// The part of the view that is the same for every caller: system directories, a selected /etc,
/// /dev, /proc, private directories.
namespace sbx::plan {

/// The home inside.
[[nodiscard]] std::string home_of(const policy::Environment& environment);
inline constexpr const char* kFallbackWorkspace = "/work";

/// The operating system's steps, read-only, and what they show. `system_root` is empty for the
/// host's own system, else the canonical directory of `filesystem.system`.
[[nodiscard]] Result<std::vector<Mount>> system_steps(const host::Host& host,
                                                      const std::string& system_root,
                                                      const Origin& origin, View& view);
/// /dev, and /proc with its masks.
[[nodiscard]] std::vector<Mount> kernel_steps(bool interactive);
/// /tmp, the home directory, /dev/shm and the empty directories that programs expect.
[[nodiscard]] std::vector<Mount> private_steps(const std::string& home);
/// An empty workspace that is the home takes its place among the steps of the view, before what is
/// copied into it.
void join_home(std::vector<Mount>& view_steps, std::vector<Mount>& more);
/// Resolves conflicts between view and grants: a file or link of the view is dropped where a grant
/// has the same target, and a link that leads to a grant (/var/tmp) becomes a directory.
void make_room(std::vector<Mount>& view_steps, const std::vector<Mount>& more);

}  // namespace sbx::plan
