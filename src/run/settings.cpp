#include "run/settings.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/held.hpp"
#include "base/sys.hpp"
#include "plan/enforcement.hpp"
#include "plan/files/disk.hpp"

namespace sbx::run {
namespace {

supervise::ExplainCall explain_with(const plan::Filter& filter) {
  return [&filter](int number, const std::uint64_t(&arguments)[6], int& errno_value) {
    plan::Refusal refusal = filter.explain(number, arguments);
    errno_value = refusal.errno_value;
    return Denial(std::move(refusal));
  };
}

}  // namespace

supervise::OnExceed on_exceed(policy::Exceed exceed) {
  switch (exceed) {
    case policy::Exceed::kill:
      return supervise::OnExceed::end_run;
    case policy::Exceed::automatic:
      return supervise::OnExceed::by_sink;
    case policy::Exceed::truncate:
      return supervise::OnExceed::drop;
  }
  return supervise::OnExceed::end_run;
}

bool has_writable(const plan::Plan& plan, plan::MountKind kind) {
  return std::ranges::any_of(plan.mounts, [&](const plan::Mount& mount) {
    return mount.kind() == kind && !mount.read_only();
  });
}

supervise::Settings settings_of(const plan::Plan& plan, const Telling& telling) {
  supervise::Settings settings{.budgets = plan.budgets};
  settings.own_tasks = plan.identity.own_tasks();
  settings.cpus = static_cast<int>(std::ceil(plan.budgets.cpus));
  settings.stdout_cap = plan.output.stdout_cap;
  settings.stderr_cap = plan.output.stderr_cap;
  settings.passed_cap = plan.output.passed_cap;
  settings.on_exceed = on_exceed(plan.output.exceed);
  settings.capture = telling.capture;
  settings.trial = telling.trial;
  settings.kill_on_denied = plan.denied == policy::DeniedCall::kill;
  settings.interactive = plan.interactive;
  settings.memory_is_granted = plan.control_group.granted.memory_bytes == plan.budgets.memory.count;
  settings.outer_events = plan.control_group.outer_events;
  settings.disk_is_host_too = plan::has_live_grant(plan);
  settings.shared_memory_is_lent = plan.lends_shared_memory;
  settings.disk_in_directory = plan.disk_in_directory;
  settings.disk_begins_with_copy = has_writable(plan, plan::MountKind::copy);
  settings.full_files_at_start =
      static_cast<std::uint64_t>(std::ranges::count_if(plan.mounts, [&](const plan::Mount& mount) {
        const auto* file = mount.as<plan::mount::File>();
        return file != nullptr && file->content.size() == plan.budgets.file_size.count;
      }));
  settings.explain = explain_with(plan.filter);
  return settings;
}

supervise::OutputForm output_form(const plan::Plan& plan, bool capture) {
  if (plan.interactive) return supervise::OutputForm::terminal;
  return capture ? supervise::OutputForm::captured : supervise::OutputForm::passed;
}

supervise::StdinFrom stdin_from(plan::StdinMode mode) {
  switch (mode) {
    case plan::StdinMode::inherit:
      return supervise::StdinFrom::inherit;
    case plan::StdinMode::null:
      return supervise::StdinFrom::null;
    case plan::StdinMode::file:
      return supervise::StdinFrom::file;
  }
  return supervise::StdinFrom::null;
}

bool memory_is_polled(const plan::Plan& plan, const cgroup::Group* group) {
  return plan.budgets.memory.count > 0 && (group == nullptr || !group->limits_memory());
}

spawn::Placement placement_in(const cgroup::Group* group) {
  if (group == nullptr) return {};
  return {.directory = group->directory(), .joins = group->joins()};
}

supervise::Tree::Handles handles_of(const spawn::Sandbox& sandbox, TreeCounters* group) {
  return {.pid = sandbox.pid,
          .pid1 = sandbox.pid1.get(),
          .control = sandbox.control.get(),
          .processes = sandbox.processes.get(),
          .group = group};
}

std::unique_ptr<supervise::Tree> tree_of(const spawn::Sandbox& sandbox,
                                         const plan::Identity& wanted,
                                         const spawn::MappedIdentity& identity, TreeCounters* group,
                                         std::vector<pid_t> other_children) {
  supervise::Tree::Handles handles = handles_of(sandbox, group);
  if (wanted.callers_own)
    return std::make_unique<supervise::DomainTree>(handles, std::move(other_children));
  if (!wanted.own_uids) return std::make_unique<supervise::Tree>(handles);
  handles.uid = identity.uid_on_host;
  handles.gid = identity.gid_on_host;
  handles.keeper = identity.keeper;
  return std::make_unique<supervise::UidTree>(handles);
}

Result<std::optional<supervise::OwnerCalls>> owner_calls(const plan::Plan& plan) {
  if (!plan.identity.callers_own) return std::nullopt;
  std::vector<std::string> places;
  for (const plan::Access& each : plan.access)
    if (each.rights.write && each.is_directory) places.push_back(each.path);
  return SBX_TRY(supervise::OwnerCalls::make(places));
}

namespace {

/// Held from now on: what takes its name later is another one.
Result<supervise::GrantedSockets::Granted> hold(const plan::GrantedSocket& socket) {
  UniqueFd file = SBX_TRY(sys::open_at(AT_FDCWD, socket.path, O_PATH | O_NOFOLLOW));
  const auto identity = held::identity_of(file.get());
  if (!identity || identity->device != socket.device || identity->inode != socket.inode)
    return fail(Error{.kind = ErrorKind::setup,
                      .code = "changed-during-set-up",
                      .message = "'" + socket.path + "' changed during set-up"});
  return supervise::GrantedSockets::Granted{.paths = {socket.path, socket.target},
                                            .file = std::move(file)};
}

/// Private, so that no socket of another program lies there: others may put theirs into a directory
/// of the machine.
bool takes_sockets(const plan::Plan& plan, const plan::Access& access) {
  const plan::Rights& rights = access.rights;
  return access.is_directory && rights.write && rights.make && rights.special &&
         access.path.starts_with(plan.private_directory + "/");
}

}  // namespace

Result<std::unique_ptr<supervise::UnixSockets>> unix_sockets(
    const plan::Plan& plan, const spawn::Sandbox& sandbox, const spawn::MappedIdentity& identity) {
  if (!plan.names_sockets) return nullptr;
  supervise::UnixSockets::Options options{
      .places = {}, .granted = {}, .ids = {}, .keeper = sandbox.pid};
  for (const plan::Access& each : plan.access)
    if (takes_sockets(plan, each)) options.places.push_back(each.path);
  for (const plan::GrantedSocket& each : plan.sockets)
    options.granted.push_back(SBX_TRY(hold(each)));
  if (plan.identity.own_uids)
    options.ids = SBX_TRY(supervise::ProgramIds::make(identity.uid_on_host, identity.gid_on_host));
  return supervise::UnixSockets::make(std::move(options));
}

std::optional<supervise::TaskLimit> task_limit(const plan::Plan& plan,
                                               const spawn::Sandbox& sandbox) {
  if (!plan.counts_tasks) return std::nullopt;
  return supervise::TaskLimit(sandbox.pid, plan.budgets.processes);
}

std::vector<std::string> live_directories(const plan::Plan& plan) {
  std::vector<std::string> directories;
  for (const plan::LiveDirectory& directory : plan.live) directories.push_back(directory.source);
  return directories;
}

Error explain_small_memory(Error error, const plan::Plan& plan, const cgroup::Group* group) {
  if (group == nullptr || !group->limits_memory() || group->memory_kills() == 0) return error;
  return {.kind = ErrorKind::setup,
          .code = "memory-too-small",
          .message = "limits.memory = " + describe(plan.budgets.memory) +
                     " does not hold the sandbox and the start of the command",
          .hint = "what the kernel needs for them counts too: allow at least 8M"};
}

}  // namespace sbx::run
