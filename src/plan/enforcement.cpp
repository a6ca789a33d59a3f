#include "plan/enforcement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "plan/files/path_text.hpp"
#include "plan/tier/shared_memory.hpp"

namespace sbx::plan {
namespace {

/// One name of --require, and what can contradict it in a plan.
struct Requirement {
  std::string_view name;
  std::optional<Promise> promise = std::nullopt;      ///< it must not be in `degraded`
  host::Means host::ControlGroup::* group = nullptr;  ///< the budget that a cgroup must enforce
  bool own_uid = false;                               ///< or what keeps the program apart better
};

constexpr std::array<Requirement, 10> kRequirements = {{
    {.name = "memory.cgroup", .group = &host::ControlGroup::memory},
    {.name = "cpu.cgroup", .group = &host::ControlGroup::cpus},
    {.name = "processes.cgroup", .group = &host::ControlGroup::processes},
    {.name = "landlock", .promise = Promise::landlock},
    {.name = "namespaces", .promise = Promise::isolation},
    {.name = "own-uid", .own_uid = true},
    {.name = "proc", .promise = Promise::own_proc},
    {.name = "syscalls.named", .promise = Promise::named_calls},
    {.name = "network.named", .promise = Promise::named_destinations},
    {.name = "trusted-policy", .promise = Promise::trusted_policy},
}};

std::unexpected<Error> unmet(std::string_view name, std::string_view why) {
  return fail({.kind = ErrorKind::host,
               .code = "requirement-not-met",
               .message = "--require " + std::string(name) + " can't be met: " + std::string(why),
               .hint = "leave out the option to run without it"});
}

std::string why_polled(const host::ControlGroup& group) {
  return group.memory_is_off ? std::string(kMemoryIsOff) : group.why;
}

std::optional<std::string> contradiction(const Requirement& requirement, const Plan& plan) {
  if (requirement.group == &host::ControlGroup::memory &&
      plan.control_group.memory == host::Means::none)
    return why_polled(plan.control_group);
  if (requirement.group != nullptr && plan.control_group.*requirement.group == host::Means::none)
    return plan.control_group.why;
  for (const Degraded& entry : plan.degraded)
    if (entry.promise == requirement.promise) return entry.why;
  if (requirement.own_uid && plan.identity.callers_own)
    return "the program has the caller's own uid here";
  if (requirement.promise == Promise::landlock && !plan.landlock_files)
    return "the policy says filesystem.landlock = false";
  return std::nullopt;
}

Status check_one(std::string_view name, const Plan& plan) {
  const auto* known = std::ranges::find(kRequirements, name, &Requirement::name);
  if (known == kRequirements.end()) {
    std::string names;
    for (const Requirement& each : kRequirements) names += std::string(each.name) + " ";
    return fail({.kind = ErrorKind::usage,
                 .code = "unknown-requirement",
                 .message = "--require does not know '" + std::string(name) + "'",
                 .hint = "it knows " + names + "all"});
  }
  const auto why = contradiction(*known, plan);
  return why ? Status(unmet(name, *why)) : Status();
}

bool is_writable(const Mount& mount) {
  const bool can_be = mount.kind() == MountKind::scratch || mount.kind() == MountKind::bind ||
                      mount.kind() == MountKind::overlay || mount.kind() == MountKind::copy;
  return can_be && !mount.read_only();
}

bool is_live(const Mount& mount) {
  return mount.kind() == MountKind::bind && !mount.read_only();
}

/// A Landlock rule holds for a directory wherever it is mounted: /tmp and /var/tmp can be the same
/// one.
bool shows_the_same(const Mount& mount, const Mount& other) {
  return mount.target == other.target ||
         (mount.kind() == MountKind::scratch && other.kind() == MountKind::scratch &&
          mount.source() == other.source());
}

/// Except below a grant that allows special files in that same directory of the host.
bool lies_in(const Mount& live, const Mount& above) {
  const bool is_allowed =
      is_live(above) && above.rights.special && is_within(live.source(), above.source());
  return !is_allowed && live.target != above.target && is_within(live.target, above.target);
}

void withhold_special_files(Plan& plan, const Mount& from, const Mount& live) {
  for (Mount& mount : plan.mounts) {
    if (!is_writable(mount) || !mount.rights.special || !shows_the_same(mount, from)) continue;
    mount.rights.special = false;
    plan.explanations.push_back("no FIFOs and sockets can be made in '" + mount.target +
                                "', because the live grant '" + live.target + "' lies in '" +
                                from.target + "' (special = true allows them in both)");
  }
}

}  // namespace

bool has_live_grant(const Plan& plan) {
  return std::ranges::any_of(plan.mounts, is_live);
}

void keep_special_files_out(Plan& plan, Around around) {
  for (const Mount& live : plan.mounts) {
    if (!is_live(live) || !live.host_source()->is_directory || live.rights.special) continue;
    for (const Mount& above : plan.mounts)
      if ((around == Around::live_grants ? is_live(above) : is_writable(above)) &&
          lies_in(live, above))
        withhold_special_files(plan, above, live);
  }
}

void move_temporary_files(Plan& plan) {
  const auto takes_sockets = [&](std::string_view target) {
    const auto last =
        std::ranges::find(plan.mounts.rbegin(), plan.mounts.rend(), target, &Mount::target);
    return last != plan.mounts.rend() && is_writable(*last) && last->rights.special;
  };
  const auto variable = std::ranges::find(plan.environment, "TMPDIR=/tmp");
  if (variable == plan.environment.end() || takes_sockets("/tmp") || !takes_sockets("/dev/shm"))
    return;
  *variable = "TMPDIR=/dev/shm";
  plan.explanations.emplace_back("TMPDIR is /dev/shm: no sockets can be made in /tmp");
}

bool special_files_reach_host(const Plan& plan) {
  const bool kept_in = plan.landlock_abi > 0 && plan.landlock_files;
  return !kept_in && std::ranges::any_of(plan.mounts, [](const Mount& mount) {
    return is_live(mount) && mount.host_source()->is_directory && !mount.rights.special;
  });
}

void note_memory(Plan& plan) {
  if (plan.control_group.memory != host::Means::none) return;
  plan.degraded.push_back(
      {.promise = Promise::memory,
       .why = why_polled(plan.control_group),
       .instead = "polled: looked at every 1 to 50 ms, so that it can be over for a moment; pipe "
                  "buffers and shared memory that no process maps don't count"});
  if (plan.network.own_namespace || plan.network.closed) return;
  plan.degraded.push_back({.promise = Promise::memory,
                           .why = "the sockets of network.mode = \"host\" are listed with those "
                                  "of all programs",
                           .instead = "what sockets hold does not count"});
}

bool no_limit_of_processes(const Plan& plan, const host::Host& host) {
  return host.escapes_process_limit && plan.control_group.processes == host::Means::none &&
         plan.budgets.processes > 0;
}

namespace {

/// copy_process(): INIT_USER is exempt.
void note_processes(const host::Host& host, Plan& plan) {
  if (!no_limit_of_processes(plan, host)) return;
  plan.degraded.push_back(
      {.promise = Promise::processes,
       .why =
           "the kernel exempts root, whose uid the program has here, and there is no cgroup that "
           "sbx may use",
       .instead = !plan.counts_tasks ? kCountsNone
                  : plan.calls > 0   ? kCountsTasksOfCalls
                                     : kCountsTasks});
}

}  // namespace

void note_live_grants(Plan& plan) {
  if (has_live_grant(plan))
    plan.degraded.push_back({.promise = Promise::disk,
                             .why = "no kernel counts what is written into live grants",
                             .instead = "counted by looking at the processes every 2 to 50 ms: "
                                        "short-lived writers for whom nobody waits are not "
                                        "counted"});
  if (!plan.live.empty())
    plan.degraded.push_back({.promise = Promise::disk_files,
                             .why = "no kernel counts the names that are made in live grants",
                             .instead =
                                 "the grants are walked every 10 to 500 ms, or less often if "
                                 "they are large: what other programs make there counts too, "
                                 "and what is removed between two walks does not"});
  if (special_files_reach_host(plan))
    plan.degraded.push_back({.promise = Promise::live_grant,
                             .why = "FIFOs and sockets can't be kept out of a live grant without "
                                    "Landlock",
                             .instead = "mknod makes none anywhere in the sandbox; bind(2) can "
                                        "make sockets"});
  // /dev/shm, which has words of its own, comes last.
  if (!plan.live_in_memory.empty() && plan.live_in_memory.front() != kSharedMemory)
    plan.degraded.push_back(
        {.promise = Promise::disk,
         .why = "'" + plan.live_in_memory.front() +
                "' lies in memory, where no kernel counts what one program writes",
         .instead = "what its whole file system grows by counts, looked at every 0.5 to 50 ms: "
                    "other programs that write there can end the run, and what takes the place of "
                    "other content does not count"});
}

void note_machine(const host::Host& host, Plan& plan) {
  note_processes(host, plan);
  if (host.landlock_abi == 0)
    plan.degraded.push_back({.promise = Promise::landlock,
                             .why = "this kernel has no Landlock, or it is switched off",
                             .instead = "the mounts alone"});
  else if (host.landlock_abi < kLandlockScopes)
    plan.degraded.push_back(
        {.promise = Promise::landlock,
         .why = fmt::format("this kernel's Landlock has no scopes (ABI {}, they came with {})",
                            host.landlock_abi, kLandlockScopes),
         .instead = "it guards files; signals and abstract sockets are kept in by the namespaces "
                    "alone"});
  if (plan.calls > 0 && host.landlock_abi < kLandlockScopes)
    plan.degraded.push_back(
        {.promise = Promise::landlock,
         .why = "calls of a session share their network, and with it the names of abstract sockets",
         .instead = "one call can connect to another's abstract sockets"});
  note_memory(plan);
  note_live_grants(plan);
  if (!plan.network.own_namespace && host.landlock_abi < kLandlockScopes)
    plan.degraded.push_back(
        {.promise = Promise::network_mode,
         .why = "the host's abstract sockets can't be shut without Landlock's scopes (ABI 6)",
         .instead = "socket(AF_UNIX) is refused"});
}

Status check_requirements(const std::vector<std::string>& required, const Plan& plan) {
  for (const std::string& name : required) {
    if (name != "all") {
      SBX_TRY(check_one(name, plan));
      continue;
    }
    if (!plan.degraded.empty())
      return unmet("all", plan.degraded.front().what() +
                              " has weaker enforcement: " + plan.degraded.front().why);
    for (const Requirement& each : kRequirements) SBX_TRY(check_one(each.name, plan));
  }
  return {};
}

}  // namespace sbx::plan
