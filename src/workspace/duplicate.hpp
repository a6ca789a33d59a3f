#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "base/copied.hpp"
#include "workspace/changes.hpp"
#include "workspace/copied.hpp"

/// The copied workspace, for directories that can't be the lower layer of an overlay.
namespace sbx::workspace {

/// Copies the source of each `copy` step of a plan into its place on the private disk, less what is
/// hidden. The copies belong to `owner`, the sandbox on the host. What was copied is in `trees`,
/// what could not be read in `left`. `is_cancelled` is asked before each name and at the end; may
/// be empty. Errors: host, setup "workspace-too-large" (the disk is full), "cannot-copy" (also
/// ECANCELED).
[[nodiscard]] Status fill_copies(const plan::Plan& plan, int scratch, uid_t uid, gid_t gid,
                                 CopiedTrees& trees, std::vector<Left>& left, const Copied& copied,
                                 const std::function<bool()>& is_cancelled);

}  // namespace sbx::workspace
