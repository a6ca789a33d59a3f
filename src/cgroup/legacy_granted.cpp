#include "cgroup/legacy_granted.hpp"

#include <fcntl.h>

#include <string>

#include "cgroup/files.hpp"

namespace sbx::cgroup {
namespace {

/// Beyond this a limit of cgroup v1 is none: it is written as the largest number of pages.
constexpr std::uint64_t kNoMemoryLimit = std::uint64_t{1} << 62;

/// Calls back for each group from the own one up to the mounted one.
template <class Look>
void upwards(const std::optional<GroupPath>& place, Look look) {
  if (!place) return;
  for (std::string folder = place->folder(); folder.size() >= place->mount.size();
       folder.resize(folder.rfind('/'))) {
    look(folder);
    if (folder.size() == place->mount.size()) break;
  }
}

}  // namespace

host::ControlGroup::Granted granted_by_legacy(const Hierarchies& hierarchies) {
  host::ControlGroup::Granted granted;
  upwards(hierarchies.memory, [&](const std::string& folder) {
    auto limit = read_number(AT_FDCWD, folder + "/memory.limit_in_bytes");
    if (limit && *limit >= kNoMemoryLimit) limit.reset();
    lower_to(granted.memory_bytes, limit);
  });
  upwards(hierarchies.pids, [&](const std::string& folder) {
    lower_to(granted.processes, read_number(AT_FDCWD, folder + "/pids.max"));
  });
  upwards(hierarchies.cpu, [&](const std::string& folder) {
    const auto quota = read_number(AT_FDCWD, folder + "/cpu.cfs_quota_us");  // -1: none
    const auto period = read_number(AT_FDCWD, folder + "/cpu.cfs_period_us");
    if (quota && period && *period > 0)
      lower_to(granted.cpus,
               std::optional(static_cast<double>(*quota) / static_cast<double>(*period)));
  });
  return granted;
}

}  // namespace sbx::cgroup
