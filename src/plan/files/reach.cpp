#include "plan/files/reach.hpp"

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

}  // namespace

std::vector<Access> reached_through(const std::vector<Mount>& mounts) {
  std::vector<Access> all{{.path = "/", .rights = {}}};
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
