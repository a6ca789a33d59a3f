#include "plan/make_plan.hpp"

#include <sys/syscall.h>

#include "base/text.hpp"
#include "host/state.hpp"
#include "plan/call_warnings.hpp"
#include "plan/enforcement.hpp"
#include "plan/files/disk.hpp"
#include "plan/filter/outside.hpp"
#include "plan/limits.hpp"
#include "plan/path_calls.hpp"
#include "plan/tier/tiers.hpp"
#include "plan/tier/weaker_note.hpp"
#include "policy/network_match.hpp"
#include "policy/warnings.hpp"

namespace sbx::plan {
namespace {

std::unexpected<Error> emulated() {
  return fail({.kind = ErrorKind::host,
               .code = "emulated",
               .message = "an emulator of single programs (qemu-user) runs sbx, and has no system "
                          "calls for sandboxes",
               .hint = "use the build of sbx for the machine's own architecture, or a virtual "
                       "machine"});
}

std::string placed(std::string rule, const Origin& origin) {
  return std::move(rule) + " (" + origin.text() + ")";
}

void decide_network(const policy::Network& network, NetworkPlan& plan) {
  plan.own_namespace = network.mode.value != policy::NetworkMode::host;
  plan.allow_list = network.mode.value == policy::NetworkMode::allow_list;
  plan.none_was_typed = !plan.allow_list && network.mode.origin.file == "--net";
  plan.private_ = network.private_.value;
  plan.match_sni = network.match_sni.value;
  plan.match_sni_rule = placed("network.match_sni = true", network.match_sni.origin);
  plan.named = network.named.value;
  plan.rule = plan.allow_list ? placed("not in network.allow", network.mode.origin)
                              : placed("network.mode = \"none\"", network.mode.origin);
  if (plan.allow_list) plan.rules = policy::network_rules(network);
  if (!plan.own_namespace) return;
  const std::vector<policy::Publication> publications = policy::publications(network);
  for (std::size_t i = 0; i < publications.size(); ++i)
    plan.published.push_back({publications[i], network.publish[i].origin});
}

bool counts_tasks(const Plan& plan, const host::Host& host) {
  if (plan.identity.is_outside_namespaces()) return plan.identity.callers_own;
  return no_limit_of_processes(plan, host);
}

Status decide_filter(const policy::Policy& policy, const host::Host& host, Plan& plan) {
  FilterContext context;
  if (plan.explain) context.noted = calls_with_paths();
  // With the host's network the program sees its abstract sockets; only Landlock's scope can block
  // them.
  context.unix_sockets = !plan.identity.is_outside_namespaces() &&
                         (plan.network.own_namespace || host.landlock_abi >= kLandlockScopes);
  context.internet_sockets = !plan.network.closed;
  context.outside_namespaces = plan.identity.is_outside_namespaces();
  context.truncates_unasked = host.landlock_abi < kLandlockTruncation;
  if (plan.counts_tasks) context.served.assign(served_tasks().begin(), served_tasks().end());
  if (plan.identity.callers_own)
    context.served.insert(context.served.end(), served_outside().begin(), served_outside().end());
  context.named_sockets = plan.names_sockets;
  if (plan.names_sockets)
    context.served.insert(context.served.end(), served_sockets().begin(), served_sockets().end());
  // A cgroup enforces its CPU quota on any CPU, and charges memory wherever it is mapped.
  context.affinity_is_budget = host.control_group.cpus == host::Means::none;
  context.memory_is_polled = host.control_group.memory == host::Means::none;
  context.writes_are_polled = has_live_grant(plan);
  context.files_reach_host = context.writes_are_polled || plan.identity.callers_own;
  context.special_files_reach_host = special_files_reach_host(plan);
  if (plan.network.notes_connect()) context.noted.push_back(SYS_connect);
  plan.filter = SBX_TRY(compile_filter(policy.syscalls, context));
  plan.denied = policy.syscalls.denied.value;
  return {};
}

std::string note_of_home(const host::Host& host) {
  const std::string why = host::why_home_is_ignored(host);
  if (why.empty()) return {};
  const std::string instead = host.home.empty() ? "there is no home" : "the home is " + host.home;
  return "HOME=" + shell_word(host.environment.at("HOME")) + " is not used: " + why + "; " +
         instead;
}

Result<Plan> plan_with(const Tier& tier, const policy::Policy& policy, const host::Host& host,
                       const RunRequest& request) {
  Plan plan;
  plan.tier = tier.kind;
  plan.identity.privileged = host.privileged;
  decide_network(policy.network, plan.network);
  plan.interactive = request.interactive;
  plan.explain = request.explain;
  plan.stdin_mode = request.stdin_mode;
  plan.stdin_file = request.stdin_file;
  plan.landlock_abi = host.landlock_abi;
  plan.landlock_files = policy.filesystem.landlock.value;
  plan.output = {.stdout_cap = policy.output.stdout_.value,
                 .stderr_cap = policy.output.stderr_.value,
                 .passed_cap = policy.output.passed.value,
                 .exceed = policy.output.exceed.value};
  for (const Namespace space : tier.namespaces)
    if (space != Namespace::net || plan.network.own_namespace) plan.namespaces.push_back(space);
  plan.notes = policy.notes;
  if (std::string note = note_of_home(host); !note.empty()) plan.notes.push_back(std::move(note));
  for (auto& list : {policy::warnings(policy, host.home), call_warnings(policy.syscalls)})
    for (const policy::Warning& warning : list)
      (warning.weight == policy::Weight::always_told ? plan.notes : plan.explanations)
          .push_back("warning: " + warning.message);

  if (request.hold)
    plan.calls = policy.session.calls.value + policy.session.contexts.value + kInitsAhead;
  SBX_TRY(tier.lay_out(policy, host, request, plan));
  decide_limits(policy, host, plan);
  plan.counts_tasks = counts_tasks(plan, host);
  SBX_TRY(decide_disk(plan, policy.limits.disk_on.value, host));
  move_temporary_files(plan);
  SBX_TRY(decide_filter(policy, host, plan));
  tier.note_weaker(host, plan);
  plan.required = request.require;
  SBX_TRY(check_requirements(plan.required, plan));
  return plan;
}

}  // namespace

Result<Plan> make_plan(const policy::Policy& policy, const host::Host& host,
                       const RunRequest& request) {
  if (host.emulated) return emulated();
  auto plan = plan_with(choose_tier(policy, host), policy, host, request);
  if (plan) return plan;
  const Tier* const instead = tier_instead(plan.error(), host);
  if (instead == nullptr) return plan;
  auto weaker = plan_with(*instead, policy, host, request);
  if (weaker) add_to_weaker_note(plan.error().message, *weaker);
  return weaker;
}

}  // namespace sbx::plan
