#include "run/weaker_plan.hpp"

#include <algorithm>
#include <utility>

#include "host/process_view.hpp"
#include "plan/enforcement.hpp"
#include "plan/files/disk.hpp"
#include "plan/tier/landlock_checks.hpp"
#include "plan/tier/landlock_notes.hpp"
#include "plan/tier/outer_proc.hpp"
#include "plan/tier/shared_memory.hpp"
#include "policy/network_match.hpp"

namespace sbx::run {
namespace {

/// Without a listener a denied call kills only its own process, and the run goes on.
Status check_denied(const plan::Plan& plan) {
  if (plan.denied != policy::DeniedCall::kill) return {};
  return fail({.kind = ErrorKind::policy,
               .code = "denied-cannot-kill",
               .message = "syscalls.denied = \"kill\" can't end the run here: a seccomp listener "
                          "outside of sbx is in the way",
               .origin = plan.filter.syscalls.denied.origin,
               .hint = "start sbx outside of what listens to its system calls, or let denied calls "
                       "fail: syscalls.denied = \"errno\""});
}

/// Nobody makes and connects the program's unix sockets, which has pairs of them then.
Status leave_sockets_unnamed(plan::Plan& plan, plan::FilterContext& context) {
  if (!std::exchange(plan.names_sockets, false)) return {};
  if (!plan.sockets.empty())
    return fail({.kind = ErrorKind::host,
                 .code = "no-landlock-tier",
                 .message = "isolation = \"landlock\": a seccomp listener outside of sbx is in the "
                            "way, and without one of its own sbx can't connect the program to '" +
                            plan.sockets.front().path + "'",
                 .hint = "start sbx outside of what listens to its system calls, or leave out "
                         "filesystem.sockets"});
  context.named_sockets = false;
  context.served.clear();
  for (Degraded& entry : plan.degraded)
    if (entry.promise == Promise::own_ipc && entry.instead.starts_with(plan::kNoOtherSockets))
      entry.instead.replace(0, plan::kNoOtherSockets.size(), plan::kNoNamedSockets);
  return {};
}

/// An outer listener (of a container manager, of WSL2) excludes another one: denials are then
/// reported without names.
Result<plan::Plan> without_listener(const plan::Plan& plan) {
  SBX_TRY(check_denied(plan));
  if (plan.identity.callers_own)
    return fail({.kind = ErrorKind::host,
                 .code = "no-landlock-tier",
                 .message = "isolation = \"landlock\": a seccomp listener outside of sbx is in the "
                            "way, and without one of its own sbx can't answer for a program with "
                            "the caller's own uid",
                 .hint = "start sbx outside of what listens to its system calls"});
  if (const policy::PlacedRule* const wide = plan.network.wide_rule())
    return fail({.kind = ErrorKind::policy,
                 .code = "too-many-ports",
                 .message = "network.allow: \"" + wide->rule.text() + "\" has " +
                            std::to_string(wide->rule.port_count()) + " ports, and at most " +
                            std::to_string(policy::kMostPortsFromStart) +
                            " can be opened here: a seccomp listener outside of sbx is in the way",
                 .origin = wide->origin,
                 .hint = "name the ports that the program uses"});
  plan::Plan weaker = plan;
  plan::FilterContext context = plan.filter.context;
  context.listener = false;
  SBX_TRY(leave_sockets_unnamed(weaker, context));
  if (std::exchange(weaker.counts_tasks, false)) {
    context.served.clear();
    for (Degraded& entry : weaker.degraded)
      if (entry.promise == Promise::processes) entry.instead = plan::kCountsNone;
  }
  weaker.filter = SBX_TRY(plan::compile_filter(plan.filter.syscalls, context));
  weaker.degraded.push_back(
      {.promise = Promise::named_calls,
       .why = "a seccomp listener outside of sbx is in the way",
       .instead = "refused calls get their error from the kernel, without a name"});
  if (weaker.network.names_attempts())
    weaker.degraded.push_back({.promise = Promise::named_destinations,
                               .why = "a seccomp listener outside of sbx is in the way",
                               .instead = "names are named, addresses are refused without a name"});
  SBX_TRY(plan::check_requirements(weaker.required, weaker));
  return weaker;
}

/// Copies the directories that can't be an overlay layer.
Result<plan::Plan> with_copies(const plan::Plan& plan, const host::Host& host, const Error& error) {
  plan::Plan copied = plan;
  plan::use_copies(copied, error.text());
  SBX_TRY(plan::decide_disk(copied, policy::DiskOn::memory, host));
  SBX_TRY(plan::check_requirements(copied.required, copied));
  return copied;
}

/// If the file system can't hold whiteouts, a run that hides names can't have its private disk
/// there.
Result<plan::Plan> without_directory(const plan::Plan& plan, const Error& error) {
  plan::Plan in_memory = plan;
  in_memory.disk_in_directory = false;
  in_memory.degraded.push_back({.promise = Promise::disk,
                                .why = error.text(),
                                .instead = "the private disk is in memory all the same"});
  SBX_TRY(plan::check_requirements(in_memory.required, in_memory));
  return in_memory;
}

/// The caller's /proc, of which Landlock opens a few files. Without Landlock it would show every
/// process of the container, and without the supervisor's view of it budgets could not be counted.
Result<plan::Plan> with_outer_proc(const plan::Plan& plan, const host::Host& host,
                                   const Error& error) {
  const auto impossible = [&error](const char* why) {
    Error told = error;
    told.retry = Retry::none;
    told.hint = std::string(why) + "; " + error.hint;
    return fail(std::move(told));
  };
  if (plan.landlock_abi == 0)
    return impossible("the container's /proc can't be shown instead: this kernel has no Landlock");
  if (!plan.landlock_files)
    return impossible("the container's /proc can't be shown instead: filesystem.landlock = false");
  if (SBX_TRY(host::hides_processes(*host.files)))
    return impossible("the container's /proc can't be shown instead: it hides processes (hidepid)");
  plan::Plan weaker = plan;
  SBX_TRY(plan::show_outer_proc(weaker));
  SBX_TRY(plan::check_requirements(weaker.required, weaker));
  return weaker;
}

Result<plan::Plan> with_callers_host_name(const plan::Plan& plan) {
  plan::Plan weaker = plan;
  weaker.keeps_host_name = true;
  weaker.degraded.push_back({.promise = Promise::host_name,
                             .why = "a system-call filter outside of sbx refuses sethostname(2)",
                             .instead = "the program sees the caller's host name"});
  SBX_TRY(plan::check_requirements(weaker.required, weaker));
  return weaker;
}

Result<plan::Plan> without_shared_memory(const plan::Plan& plan, const Error& error) {
  plan::Plan weaker = plan;
  plan::withhold_shared_memory(error.text(), weaker);
  SBX_TRY(plan::check_requirements(weaker.required, weaker));
  return weaker;
}

}  // namespace

Result<plan::Plan> weaker_plan(const plan::Plan& plan, const host::Host& host, const Error& error) {
  switch (error.retry) {
    case Retry::none:
    case Retry::with_callers_uid:    // make_plan() has tried that
    case Retry::without_namespaces:  // with other paths: launch() makes another plan
      break;
    case Retry::with_copies:
      return with_copies(plan, host, error);
    case Retry::disk_in_memory:
      return without_directory(plan, error);
    case Retry::without_listener:
      return without_listener(plan);
    case Retry::with_outer_proc:
      return with_outer_proc(plan, host, error);
    case Retry::keeps_host_name:
      return with_callers_host_name(plan);
    case Retry::without_shared_memory:
      return without_shared_memory(plan, error);
  }
  return fail(error);
}

void add_why_not_without(const Error& why, Error& error) {
  std::string hint = "weaker isolation does not work either: " + why.text();
  std::string_view cure = why.hint;
  if (cure.starts_with(plan::kWithNamespaces)) {  // none here, where there are none
    cure.remove_prefix(std::string_view(plan::kWithNamespaces).size());
    cure.remove_prefix(std::min(cure.find_first_not_of("; "), cure.size()));
  }
  if (!cure.empty()) hint += "\nfor weaker isolation: " + std::string(cure);
  error.hint = hint + (error.hint.empty() ? "" : "\n") + error.hint;
}

}  // namespace sbx::run
