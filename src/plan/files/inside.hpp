#pragma once

#include <string>
#include <vector>

#include "plan/files/steps.hpp"

/// The view inside that is the same for every caller: system folders, a curated /etc, /dev, /proc,
/// private folders.
namespace sbx::plan {

inline constexpr const char* kHome = "/home/sandbox";
inline constexpr const char* kFallbackWorkspace = "/work";

/// Steps of the operating system, read-only, and what they show. `system_root` is empty for the
/// host's own or the canonical folder of `filesystem.system`.
[[nodiscard]] Result<std::vector<Mount>> system_steps(const host::Host& host,
                                                      const std::string& system_root,
                                                      const Origin& origin, View& view);
/// /etc: synthetic files, and from the system what no program should miss and no one minds showing.
[[nodiscard]] std::vector<Mount> etc_steps(const host::Host& host, const std::string& system_root,
                                           policy::NetworkMode network);
/// /dev and /proc with its masks.
[[nodiscard]] std::vector<Mount> kernel_steps(bool interactive);
/// /tmp, the home, /dev/shm and the empty folders that programs expect.
[[nodiscard]] std::vector<Mount> private_steps();
/// Changes what stands where something else goes: a file or link of the view gives way to a grant
/// of that name, and a link that a grant goes through (/var/tmp) becomes the folder itself.
void make_room(std::vector<Mount>& view_steps, const std::vector<Mount>& more);

}  // namespace sbx::plan
