#pragma once

#include "cgroup/hierarchies.hpp"
#include "host/host.hpp"

namespace sbx::cgroup {

/// The limits of the cgroup v1 groups from those that sbx is in up to what is mounted.
[[nodiscard]] host::ControlGroup::Granted granted_by_legacy(const Hierarchies& hierarchies);

}  // namespace sbx::cgroup
