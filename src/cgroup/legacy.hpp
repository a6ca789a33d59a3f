#pragma once

#include <memory>
#include <string>

#include "cgroup/group.hpp"
#include "cgroup/hierarchies.hpp"
#include "host/host.hpp"

/// cgroup v1, for a caller with root's rights: groups of the sandbox's own in the memory, pids, cpu
/// and cpuacct hierarchies, below those that sbx runs in.
namespace sbx::cgroup {

struct LegacyMade {
  std::unique_ptr<Group> group;  ///< null: see `why`
  bool limits_cpus = false;
  std::string why;  ///< why a controller is missing; empty: none is
};
[[nodiscard]] LegacyMade make_legacy(const Hierarchies& hierarchies);

/// The limits of the cgroup v1 groups from those that sbx is in up to what is mounted.
[[nodiscard]] host::ControlGroup::Granted granted_by_legacy(const Hierarchies& hierarchies);

}  // namespace sbx::cgroup
