#pragma once

#include "budget/hierarchies.hpp"
#include "host/host.hpp"

namespace sbx::budget {

/// The limits of the cgroup v1 groups from those that sbx is in up to what is mounted.
[[nodiscard]] host::ControlGroup::Granted granted_by_legacy(const Hierarchies& hierarchies);

/// What the forked attacher does; `channel` is its end of the socket pair.
[[noreturn]] void run_legacy_attacher(int channel);

}  // namespace sbx::budget
