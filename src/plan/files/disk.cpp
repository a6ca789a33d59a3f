#include "plan/files/disk.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/private_disk.hpp"

namespace sbx::plan {
namespace {

bool is_writable_overlay(const Mount& mount) {
  return mount.kind() == MountKind::overlay && !mount.read_only();
}

/// The reason, as recorded in `degraded` when a mount became a copy.
std::string why_copied(const Plan& plan) {
  const auto told = std::ranges::find(plan.degraded, Promise::workspace_mode, &Degraded::promise);
  return told == plan.degraded.end() ? "an overlay is not possible" : told->why;
}

}  // namespace

void give_disk_places(std::vector<Mount>& mounts) {
  std::uint32_t next = 0;
  for (Mount& step : mounts)
    if (mount::Layered* layered = step.layered()) layered->disk_place = next++;
}

std::string place_on_disk(const mount::Layered& layered) {
  return fmt::format("{}/{}/", private_disk::kOverlays, layered.disk_place);
}

void use_copies(Plan& plan, const std::string& why) {
  for (Mount& mount : plan.mounts) {
    if (!is_writable_overlay(mount)) continue;
    become_copy(mount);
    plan.degraded.push_back({.promise = Promise::workspace_mode,
                             .why = "'" + mount.target + "' can't be an overlay: " + why,
                             .instead = "it is a copy, made when the run began"});
  }
}

Status decide_disk(Plan& plan, policy::DiskOn asked, const host::Host& host) {
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
  for (const Mount& step : plan.mounts) {
    const auto* copy = step.as<mount::Copy>();
    if (copy == nullptr) continue;
    bytes += copy->bytes;
    entries += copy->entries;
    if (bytes > plan.budgets.disk.count || entries > plan.budgets.disk_files)
      return fail({.kind = ErrorKind::policy,
                   .code = "workspace-too-large",
                   .message = "'" + copy->source.path + "' must be copied (" + why_copied(plan) +
                              ") and holds " + describe(Bytes{bytes}) + " in " +
                              std::to_string(entries) +
                              " names, more than limits.disk and limits.disk_files allow",
                   .origin = step.origin,
                   .hint = "raise them (--disk), or name a smaller directory"});
  }
  std::string why;
  if (asked == policy::DiskOn::directory)
    why = "limits.disk_on = \"directory\"";
  else if (bytes > plan.budgets.disk.count / 2 || entries > plan.budgets.disk_files / 2)
    why = "the copy of the workspace takes more than half of it";
  else if (std::ranges::any_of(plan.mounts, is_writable_overlay) &&
           !host.files->memory_takes_attributes())
    why = "this kernel's tmpfs can't hold what an overlay writes (before Linux 6.6)";
  if (why.empty() || plan.disk_in_directory) return {};
  plan.disk_in_directory = true;
  plan.degraded.push_back({.promise = Promise::disk,
                           .why = "the private disk is a directory of the state home: " + why,
                           .instead = "it is measured while the program runs, so that it can be "
                                      "over for a moment; files without a name are not counted"});
  return {};
}

}  // namespace sbx::plan
