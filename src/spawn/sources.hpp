#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "plan/plan.hpp"
#include "spawn/identity.hpp"

/// What a caller with root's rights prepares before the clone: detached, idmapped mounts of what is
/// granted. An ordinary user can't (open_tree(CLONE) in the host's mount namespace is EPERM): there
/// the child opens every source itself.
namespace sbx::spawn {

/// One entry per plan mount.
struct Source {
  UniqueFd tree{};        ///< detached mount; invalid: the child opens the path
  std::string content{};  ///< a file that can't be idmapped goes in by content
  bool by_content = false;
};

/// Errors: setup, naming the path and its policy line. Does nothing for an ordinary caller.
[[nodiscard]] Result<std::vector<Source>> open_sources(const plan::Plan& plan,
                                                       const Identity& identity);

/// MOUNT_ATTR_* of a step.
[[nodiscard]] std::uint64_t mount_attributes(const plan::Mount& mount);

}  // namespace sbx::spawn
