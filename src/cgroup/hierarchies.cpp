#include "cgroup/hierarchies.hpp"

#include <algorithm>
#include <array>

namespace sbx::cgroup {
namespace {

std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return taken;
}

bool lists(std::string_view list, std::string_view word) {
  while (!list.empty())
    if (take_until(list, ',') == word) return true;
  return false;
}

/// A line of /proc/self/cgroup: "4:memory:/job", "0::/user.slice".
struct OwnGroup {
  std::string_view controllers;
  std::string_view path;
};

std::vector<OwnGroup> parse_own(std::string_view text) {
  std::vector<OwnGroup> groups;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    take_until(line, ':');
    const std::string_view controllers = take_until(line, ':');  // no ':' in it, the path may
    if (line.starts_with('/')) groups.push_back({controllers, line});
  }
  return groups;
}

/// Below the part of the hierarchy that is mounted; in a cgroup namespace both are relative to its
/// root.
std::optional<GroupPath> place_in(const host::MountPoint& mount, std::string_view path) {
  std::string_view root = mount.root;
  if (root == "/") root = "";
  if (!path.starts_with(root)) return std::nullopt;
  path.remove_prefix(root.size());
  if (path == "/") path = "";
  // "/.." leads out of a cgroup namespace: a group that can't be named here
  if ((!path.empty() && !path.starts_with('/')) || path.starts_with("/..")) return std::nullopt;
  return GroupPath{.mount = mount.path, .group = std::string(path)};
}

constexpr std::array<std::string_view, 4> kV1Controllers = {"memory", "pids", "cpu", "cpuacct"};

}  // namespace

bool has_v1_controllers(std::string_view own_groups) {
  return std::ranges::any_of(parse_own(own_groups), [](const OwnGroup& group) {
    return std::ranges::any_of(kV1Controllers, [&](std::string_view controller) {
      return lists(group.controllers, controller);
    });
  });
}

Hierarchies find_hierarchies(std::string_view own_groups,
                             const std::vector<host::MountPoint>& mounts) {
  Hierarchies found;
  const std::vector<OwnGroup> own = parse_own(own_groups);
  for (const host::MountPoint& mount : mounts) {
    if (mount.type == "cgroup2" && !found.unified)
      for (const OwnGroup& group : own)
        if (group.controllers.empty()) found.unified = place_in(mount, group.path);
    if (mount.type != "cgroup") continue;
    std::optional<GroupPath>* const places[] = {&found.memory, &found.pids, &found.cpu,
                                                &found.cpuacct};
    for (std::size_t i = 0; i < kV1Controllers.size(); ++i) {
      if (*places[i] || !lists(mount.options, kV1Controllers[i])) continue;
      for (const OwnGroup& group : own)
        if (lists(group.controllers, kV1Controllers[i])) *places[i] = place_in(mount, group.path);
    }
  }
  return found;
}

}  // namespace sbx::cgroup
