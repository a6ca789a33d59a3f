#include "plan/files/reach.hpp"

#include <algorithm>
#include <string>

namespace sbx::plan {
namespace {

/// The others make the root's own entries, or cover or fix a part of what an earlier step shows.
bool shows_something(MountKind kind) {
  switch (kind) {
    case MountKind::bind:
    case MountKind::overlay:
    case MountKind::copy:
    case MountKind::scratch:
    case MountKind::device:
    case MountKind::devpts:
    case MountKind::proc:
      return true;
    case MountKind::directory:
    case MountKind::symlink:
    case MountKind::file:
    case MountKind::outer_proc:
    case MountKind::mask_file:
    case MountKind::mask_directory:
    case MountKind::read_only:
    case MountKind::pinned:
    case MountKind::content:
      return false;
  }
  return false;
}

bool is_directory(const Mount& step) {
  const auto* bind = step.as<mount::Bind>();
  return bind == nullptr || bind->source.is_directory;
}

/// These tell about the machine and not about its processes. What a kernel lacks is left out; what
/// a container covers stays covered.
constexpr const char* kOpenInOuterProc[] = {
    "/proc/meminfo",
    "/proc/cpuinfo",
    "/proc/stat",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/version",
    "/proc/filesystems",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/ostype",
    "/proc/sys/kernel/pid_max",
    "/proc/sys/kernel/threads-max",
    "/proc/sys/kernel/ngroups_max",
    "/proc/sys/kernel/cap_last_cap",
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/kernel/random/entropy_avail",
    "/proc/sys/kernel/random/uuid",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/max_map_count",
    "/proc/sys/fs/file-max",
    "/proc/sys/fs/nr_open",
    "/proc/sys/fs/pipe-max-size",
};

/// A rule of Landlock for "/" would hold below /proc too: it looks for rules from a file up to the
/// root, across mounts. So the root itself can't be listed.
std::vector<Access> all_but_proc(const std::vector<Mount>& mounts) {
  std::vector<Access> all;
  for (const Mount& step : mounts) {
    const std::string part = step.target.substr(0, step.target.find('/', 1));
    const bool is_part = part == step.target;
    if (part == "/proc" || (is_part && step.kind() == MountKind::symlink) ||
        std::ranges::find(all, part, &Access::path) != all.end())
      continue;
    all.push_back(
        {.path = part,
         .rights = {},
         .is_directory = !is_part || (step.kind() != MountKind::file && is_directory(step))});
  }
  for (const char* const path : kOpenInOuterProc)
    all.push_back({.path = path, .rights = {.execute = false}, .is_directory = false});
  return all;
}

}  // namespace

std::span<const char* const> open_in_outer_proc() {
  return kOpenInOuterProc;
}

bool shows_outer_proc(const std::vector<Mount>& mounts) {
  return std::ranges::find(mounts, MountKind::outer_proc, &Mount::kind) != mounts.end();
}

std::vector<Access> reached_through(const std::vector<Mount>& mounts) {
  std::vector<Access> all = shows_outer_proc(mounts)
                                ? all_but_proc(mounts)
                                : std::vector<Access>{{.path = "/", .rights = {}}};
  bool has_devices = false;
  for (const Mount& step : mounts) {
    if (!shows_something(step.kind())) continue;
    // The devices share a directory that holds nothing else but links and deeper mounts.
    const bool is_device = step.kind() == MountKind::device && step.target.starts_with("/dev/");
    if (is_device && has_devices) continue;
    has_devices = has_devices || is_device;
    all.push_back({.path = is_device ? "/dev" : step.target,
                   .rights = step.rights,
                   .is_directory = is_directory(step),
                   .origin = step.origin});
  }
  return all;
}

}  // namespace sbx::plan
