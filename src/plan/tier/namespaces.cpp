#include "plan/tier/namespaces.hpp"

#include <iterator>
#include <memory>

#include "plan/enforcement.hpp"
#include "plan/environment.hpp"
#include "plan/files/disk.hpp"
#include "plan/files/etc.hpp"
#include "plan/files/guard.hpp"
#include "plan/files/inputs.hpp"
#include "plan/files/inside.hpp"
#include "plan/files/places.hpp"
#include "plan/files/reach.hpp"
#include "plan/files/seed.hpp"
#include "plan/files/way_here.hpp"
#include "plan/program/command.hpp"

namespace sbx::plan {
namespace {

void append(std::vector<Mount>& all, std::vector<Mount> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

void append(std::vector<std::string>& all, std::vector<std::string> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// Empty for the host's own system.
Result<std::string> system_root(const policy::Policy& policy, const host::Host& host) {
  const auto& system = policy.filesystem.system;
  if (system.value == "host") return std::string();
  auto root = host.files->canonical(system.value);
  if (!root)
    return fail({.kind = ErrorKind::policy,
                 .code = "missing-system",
                 .message = "cannot use filesystem.system '" + system.value + "'",
                 .errno_value = root.error().errno_value,
                 .origin = system.origin});
  return *root == "/" ? std::string() : *root;
}

}  // namespace

Result<std::shared_ptr<const Sight>> lay_out_files(const policy::Policy& policy,
                                                   const host::Host& host,
                                                   const RunRequest& request, Plan& plan) {
  const std::string root = SBX_TRY(system_root(policy, host));
  const auto sight =
      std::make_shared<Sight>(resolve_deny(policy.filesystem.deny, host), host.files.get());
  const DenyRules& denials = sight->denials;
  View& view = sight->view;
  for (const DenyRule& rule : denials.rules()) plan.hidden_names.push_back(rule.pattern);
  append(plan.mounts, SBX_TRY(system_steps(host, root, policy.filesystem.system.origin, view)));
  append(plan.mounts,
         etc_steps(host, root, policy, denials,
                   plan.tier == TierKind::namespaces ? SmallFiles::copied : SmallFiles::bound));
  append(plan.mounts, kernel_steps(request.interactive || request.hold));
  append(plan.mounts, private_steps(home_of(policy.environment)));
  append(plan.mounts, SBX_TRY(seed_steps(policy, host, denials)));

  Places places = SBX_TRY(decide_places(policy, host, denials, view));
  plan.working_directory = places.working_directory;
  Program program =
      request.hold
          ? SBX_TRY(show_interpreters(policy, host, request, root, plan.working_directory, view))
          : SBX_TRY(resolve_program(policy, host, request, root, plan.working_directory, view));
  const std::size_t of_system = plan.mounts.size();
  hide_in_binds(denials, host, of_system, plan.mounts, plan.degraded);
  hide_in_binds(denials, host, program.steps.size(), program.steps, plan.degraded);
  append(places.steps, std::move(program.steps));
  append(places.steps, SBX_TRY(input_steps(policy, host, request.inputs, denials,
                                           {view, plan.working_directory, places.steps})));
  add_way_here(host, view, denials, plan.mounts, places.steps);
  sort_by_depth(places.steps);  // a mount hides what was mounted below its target before
  join_home(plan.mounts, places.steps);
  make_room(plan.mounts, places.steps);
  append(plan.mounts, std::move(places.steps));
  give_disk_places(plan.mounts);

  if (request.hold) {
    sight->system_root = root;
    sight->bin_directories = program.bin_directories;
    sight->environment = request.environment;
    plan.sight = sight;
  }
  plan.command = std::move(program.command);
  plan.executable = std::move(program.executable);
  plan.interpreter = std::move(program.interpreter);
  plan.umask = request.umask.value_or(host.umask);
  plan.environment = decide_environment(policy.environment, host, request, program.bin_directories);
  plan.live = std::move(places.live);
  plan.live_in_memory = std::move(places.live_in_memory);
  plan.live_on_overlay = std::move(places.live_on_overlay);
  plan.state_directories = std::move(places.state_directories);
  plan.placeholders = std::move(places.placeholders);
  plan.most_entries = policy.filesystem.scan.value;
  plan.degraded.insert(plan.degraded.end(), places.degraded.begin(), places.degraded.end());
  append(plan.notes, std::move(places.notes));
  append(plan.explanations, std::move(places.explanations));
  append(plan.explanations, std::move(program.explanations));
  append(plan.notes, std::move(program.notes));
  return sight;
}

Status lay_out_mounts(const policy::Policy& policy, const host::Host& host,
                      const RunRequest& request, Plan& plan) {
  SBX_TRY(lay_out_files(policy, host, request, plan));
  keep_special_files_out(plan, Around::all_mounts);
  plan.access = reached_through(plan.mounts);
  return {};
}

}  // namespace sbx::plan
