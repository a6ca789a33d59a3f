#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "plan/plan.hpp"
#include "spawn/identity.hpp"

/// Prepared before the clone by a caller with root's privileges: detached, idmapped mounts of the
/// grants. For an ordinary user open_tree(CLONE) in the host's mount namespace fails with EPERM, so
/// the child opens every source itself.
namespace sbx::spawn {

/// One entry per plan mount.
struct Source {
  UniqueFd tree{};        ///< detached mount; invalid: the child opens the path
  std::string content{};  ///< contents of a file that can't be idmapped
  bool by_content = false;
};

/// Errors: setup, with the path and its policy line. Does nothing for an ordinary caller.
[[nodiscard]] Result<std::vector<Source>> open_sources(const plan::Plan& plan,
                                                       const MappedIdentity& identity);

}  // namespace sbx::spawn
