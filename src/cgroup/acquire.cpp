#include "cgroup/acquire.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "base/sys.hpp"
#include "cgroup/files.hpp"
#include "cgroup/legacy.hpp"
#include "cgroup/owned_directory.hpp"
#include "cgroup/unified.hpp"
#include "host/cgroup_reasons.hpp"
#include "host/parse.hpp"

namespace sbx::cgroup {
namespace {

using host::Means;

constexpr std::size_t kProcFile = std::size_t{4} << 20;

/// A test may ask for polling where there are groups.
bool polling_is_asked_for() {
#ifdef SBX_FAULTS
  const char* const means = std::getenv("SBX_TEST_MEANS");
  return means != nullptr && std::string_view(means) == "polled";
#else
  return false;
#endif
}

void note_group(Acquired& acquired, const Group& group, Means means, bool limits_cpus) {
  host::ControlGroup& facts = acquired.facts;
  if (group.limits_memory()) facts.memory = means;
  if (group.limits_processes()) facts.processes = means;
  if (group.counts_cpu_time()) facts.cpu_time = means;
  if (limits_cpus) facts.cpus = means;
}

Caller caller() {
  return {.uid = ::geteuid(), .pid = ::getpid()};
}

/// Where this process's groups (/proc/self/cgroup) are mounted; nothing without /proc.
std::optional<Hierarchies> look_up(const Result<std::string>& own) {
  const auto mounts = sys::read_file("/proc/self/mountinfo", kProcFile);
  if (!own || !mounts) return std::nullopt;
  return find_hierarchies(*own, host::mounts_in(*mounts));
}

/// True for a logged-in user without limits; otherwise sbx stays in its group.
bool may_ask_for_scope(const GroupPath& own) {
  const uid_t uid = ::geteuid();
  return is_login(own.group, uid) && !is_limited(own, uid);
}

Acquired acquire_unified(const GroupPath& own, bool in_own_scope) {
  Acquired acquired;
  acquired.facts.granted = granted_by_unified(own);
  acquired.facts.memory_is_off = lacks_memory_controller(own);
  acquired.facts.outer_events =
      own.directory() + "/memory.events.local";  // not its children's kills
  Caller me = caller();
  me.in_own_scope = in_own_scope;
  const auto spot = find_spot(own, me);
  if (!spot) {
    acquired.facts.why = spot.error().message;
    return acquired;
  }
  auto group = make_unified(own, *spot);
  if (!group) {
    acquired.facts.why = group.error().text();
    return acquired;
  }
  note_group(acquired, **group, Means::cgroup_v2, spot->controllers.cpu);
  acquired.facts.why = "its controller is not passed on to groups that sbx may make";
  acquired.group = std::move(*group);
  return acquired;
}

/// Nothing is made, but what holds around sbx is known as far as it can be read.
Acquired acquire_none(const Hierarchies& hierarchies) {
  Acquired acquired;
  acquired.facts.granted = granted_by_legacy(hierarchies);
  if (hierarchies.memory)
    acquired.facts.outer_events = hierarchies.memory->directory() + "/memory.oom_control";
  return acquired;
}

Acquired acquire_legacy(const Hierarchies& hierarchies) {
  Acquired acquired = acquire_none(hierarchies);
  LegacyMade made = make_legacy(hierarchies);
  if (!made.why.empty()) acquired.facts.why = std::move(made.why);
  if (made.group) note_group(acquired, *made.group, Means::cgroup_v1, made.limits_cpus);
  acquired.group = std::move(made.group);
  return acquired;
}

}  // namespace

Acquisition Acquisition::begin() {
  Acquisition acquisition;
  if (polling_is_asked_for()) {
    acquisition.why_ = "SBX_TEST_MEANS says so";
    return acquisition;
  }
  const auto own = sys::read_file("/proc/self/cgroup", kProcFile);
  // A controller is bound to one version: where these are v1's, v2 has none of them.
  acquisition.is_v1_ = own && has_v1_controllers(*own);
  const auto found = look_up(own);
  if (!found) {
    acquisition.why_ = "/proc can't be read";
    return acquisition;
  }
  acquisition.hierarchies_ = *found;
  const std::optional<GroupPath>& unified = found->unified;
  if (!acquisition.is_v1_ && unified && !find_spot(*unified, caller()) &&
      may_ask_for_scope(*unified))
    acquisition.scope_.emplace(ScopeRequest::send(::geteuid()));
  return acquisition;
}

Acquired Acquisition::finish_unified() {
  const GroupPath before = *hierarchies_.unified;
  if (!scope_) return acquire_unified(before, false);
  const Status moved = scope_->finish();
  const auto now = look_up(sys::read_file("/proc/self/cgroup", kProcFile));
  Acquired acquired =
      acquire_unified(now && now->unified ? *now->unified : before, moved.has_value());
  if (!moved && !acquired.group) acquired.facts.why = moved.error().message;
  // What held where sbx was started holds on.
  const host::ControlGroup::Granted granted = granted_by_unified(before);
  lower_to(acquired.facts.granted.memory_bytes, granted.memory_bytes);
  lower_to(acquired.facts.granted.processes, granted.processes);
  lower_to(acquired.facts.granted.cpus, granted.cpus);
  return acquired;
}

Acquired Acquisition::finish() {
  if (why_.empty() && is_v1_ && ::geteuid() == 0) return acquire_legacy(hierarchies_);
  if (why_.empty() && !is_v1_ && hierarchies_.unified) return finish_unified();
  Acquired acquired = acquire_none(hierarchies_);
  acquired.facts.why = !why_.empty() ? why_
                       : is_v1_      ? std::string(host::kLegacyIsRoots)
                                     : "no cgroup file system is mounted";
  return acquired;
}

void sweep_left_groups() {
  const auto own = sys::read_file("/proc/self/cgroup", kProcFile);
  const auto found = look_up(own);
  if (!found) return;
  if (own && has_v1_controllers(*own)) {
    for (const auto* place : {&found->memory, &found->pids, &found->cpu, &found->cpuacct})
      if (*place) sweep((*place)->directory());
    return;
  }
  if (!found->unified) return;
  if (const auto spot = find_spot(*found->unified, caller())) sweep(spot->parent);
}

}  // namespace sbx::cgroup
