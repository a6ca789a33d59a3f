#include "plan/tier/live.hpp"

#include <algorithm>

#include "plan/enforcement.hpp"
#include "plan/files/path_text.hpp"
#include "plan/tier/private_names.hpp"
#include "plan/tier/shared_memory.hpp"

namespace sbx::plan {
namespace {

constexpr const char* kCopyInstead = "--workspace DIR:overlay, and --apply for what is to stay";
constexpr mode_t kOthersWrite = 02;

bool is_live_step(const Mount& step) {
  return step.kind() == MountKind::bind && !step.read_only();
}

std::string grant_of(const Mount& live) {
  return "the grant of '" + live.source() + "' for writing";
}

/// Such as a name that is denied or protected, which a mount would cover. The directories on the
/// way to such a name are pinned.
const Mount* step_inside(const Plan& plan, const Mount& live) {
  const Mount* found = nullptr;
  for (const Mount& step : plan.mounts) {
    if (step.target == live.target || !is_within(step.target, live.target) || is_live_step(step))
      continue;
    found = &step;
    if (step.kind() != MountKind::pinned) break;
  }
  return found;
}

/// In a copy of the workspace, whose own files stand under the grant's name.
bool is_in_copy(const Plan& plan, const Mount& live) {
  return std::ranges::any_of(plan.mounts, [&](const Mount& step) {
    return step.layered() != nullptr && !step.read_only() && is_within(live.target, step.target);
  });
}

/// A mount would keep it from being opened, mount(8), "nodev".
std::string device_in(const host::Host& host, const Mount& live) {
  std::string found;
  const auto visit = [&](const host::Seen& seen) {
    const host::FileType type = seen.facts.type;
    if (type != host::FileType::character && type != host::FileType::block)
      return type == host::FileType::directory ? host::Walk::into : host::Walk::past;
    const std::string directory(seen.directory);
    found = joined(directory.empty() ? live.source() : joined(live.source(), directory), seen.name);
    return host::Walk::end;
  };
  if (!host.files->walk(live.source(), visit, [](const std::string&) {})) return live.source();
  return found;
}

/// The program of a root has no capability.
bool is_closed_to_root(const host::Host& host, const Mount& live) {
  const auto facts = host.files->look(live.source());
  return host.uid == 0 && facts && facts->uid != 0 && (facts->mode & kOthersWrite) == 0;
}

std::optional<std::string> unkept(const host::Host& host, const Plan& plan, const Mount& live) {
  if (const Mount* const inside = step_inside(plan, live))
    return "'" + inside->target + "', which must not be changed or seen, in " + grant_of(live);
  for (const PlannedPlaceholder& each : plan.placeholders)
    if (is_within(each.target, live.target))
      return "'" + parent_of(each.target) + "', in which names are protected, in " + grant_of(live);
  for (const std::string& each : plan.state_directories)
    if (is_within(each, live.source()))
      return "'" + each + "', where sbx keeps its own, in " + grant_of(live);
  if (is_within(kPrivatePlaces, live.source()) || is_within(kSharedMemory, live.source()))
    return grant_of(live) + ", in which other runs have files,";
  if (is_in_copy(plan, live)) return grant_of(live) + ", which lies in a copied workspace,";
  if (!live.host_source()->is_directory) return std::nullopt;
  if (const std::string device = device_in(host, live); !device.empty())
    return grant_of(live) + ", in which '" + device + "' is a device or can't be looked at,";
  return std::nullopt;
}

}  // namespace

bool wants_live_grant(const policy::Policy& policy) {
  return !policy.filesystem.write.empty() ||
         policy.filesystem.workspace.mode.value == policy::WorkspaceMode::read_write;
}

std::optional<LiveObstacle> live_obstacle(const host::Host& host, const Plan& plan) {
  for (const Mount& live : plan.mounts) {
    if (!is_live_step(live)) continue;
    if (auto what = unkept(host, plan, live))
      return LiveObstacle{std::move(*what), live.origin, kCopyInstead};
    if (is_closed_to_root(host, live))
      return LiveObstacle{
          grant_of(live) + ", which belongs to another user,", live.origin,
          std::string("a program of root has no capability to write there: chown it, or ") +
              kCopyInstead};
  }
  return std::nullopt;
}

void note_live(Plan& plan) {
  if (!has_live_grant(plan)) return;
  note_live_grants(plan);
  const auto note = [&](Promise promise, std::string why, std::string instead) {
    plan.degraded.push_back(
        {.promise = promise, .why = std::move(why), .instead = std::move(instead)});
  };
  note(Promise::disk, "the kernel's counters do not tell live grants from the private directory",
       "what is written there counts with the live grants too");
  for (const Mount& step : plan.mounts)
    if (is_live_step(step) && !step.host_source()->is_directory)
      note(Promise::live_grant, "no namespaces here",
           "the mode and the times of '" + step.source() + "' can't be changed");
}

}  // namespace sbx::plan
