#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cgroup/group.hpp"
#include "cgroup/hierarchies.hpp"
#include "cgroup/owned_directory.hpp"

/// cgroup v2: a group in the subtree that was delegated to the caller.
namespace sbx::cgroup {

/// The controllers that sbx uses.
struct Controllers {
  bool memory = false;
  bool pids = false;
  bool cpu = false;
  [[nodiscard]] bool any() const { return memory || pids || cpu; }
};

/// Where a group with controllers may be made. Children of a group have controllers only when its
/// cgroup.subtree_control lists them, and a group with processes can't list any, the hierarchy's
/// root excepted (cgroups(7), "no internal processes"). So, in this order:
///
/// 1. below the group sbx is in, where that is the root of the whole hierarchy;
/// 2. beside it, where the group above was delegated: to an ordinary user by owning it, and, where
///    systemd manages the path, by the mark of Delegate= (else systemd is its single writer); to
///    root by that mark only, since root may write everywhere;
/// 3. below it, where it was delegated and sbx is alone in it: then sbx moves into a group of its
///    own there first, and back at the end.
struct Spot {
  std::string parent;
  Controllers controllers;
  bool alone = false;  ///< case 3: subtree_control is still to be written
};

/// What deciding needs to know of the caller.
struct Caller {
  uid_t uid = 0;
  pid_t pid = 0;
  /// The own group is a scope that sbx has just been given: a user's manager leaves no mark.
  bool in_own_scope = false;
};

/// Errors: host; the message names the reason.
[[nodiscard]] Result<Spot> find_spot(const GroupPath& own, const Caller& caller);

/// True if the whole hierarchy has no memory controller: the kernel was booted without. False in a
/// cgroup namespace, which doesn't show it.
[[nodiscard]] bool lacks_memory_controller(const GroupPath& own);

/// The limits of the groups from `own` up to what is mounted.
[[nodiscard]] host::ControlGroup::Granted granted_by_unified(const GroupPath& own);

/// Makes the group, and removes what dead runs left beside it. Errors: host, as find_spot.
[[nodiscard]] Result<std::unique_ptr<Group>> make_unified(const GroupPath& own, const Spot& spot);

}  // namespace sbx::cgroup
