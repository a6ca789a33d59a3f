#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/host.hpp"

/// Which control groups this process is in, and where they can be reached: cgroups(7).
namespace sbx::cgroup {

/// One hierarchy: where it is mounted and which of its groups this process is in.
struct GroupPath {
  std::string mount;  ///< absolute
  std::string group;  ///< below it: "" for the mounted root, else "/a/b"
  [[nodiscard]] std::string directory() const { return mount + group; }
};

struct Hierarchies {
  std::optional<GroupPath> unified;  ///< cgroup v2
  std::optional<GroupPath> memory;   ///< cgroup v1, as the following
  std::optional<GroupPath> pids;
  std::optional<GroupPath> cpu;
  std::optional<GroupPath> cpuacct;
};

/// Whether controllers that sbx would use are bound to cgroup v1, from the text of
/// /proc/self/cgroup.
[[nodiscard]] bool has_v1_controllers(std::string_view own_groups);

/// From the texts of /proc/self/cgroup and the mounts. A hierarchy that is not mounted, or of which
/// only a part is mounted that this process is not in, is absent.
[[nodiscard]] Hierarchies find_hierarchies(std::string_view own_groups,
                                           const std::vector<host::MountPoint>& mounts);

}  // namespace sbx::cgroup
