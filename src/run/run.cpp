#include "run/run.hpp"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/sys.hpp"
#include "cgroup/group.hpp"
#include "plan/appeared.hpp"
#include "plan/enforcement.hpp"
#include "plan/files/disk.hpp"
#include "policy/network_match.hpp"
#include "run/network.hpp"
#include "run/sought.hpp"
#include "run/under_way.hpp"
#include "supervise/supervisor.hpp"
#include "workspace/copy.hpp"
#include "workspace/duplicate.hpp"
#include "workspace/state.hpp"

namespace sbx::run {
namespace {

/// Times of the start-up stages in microseconds, for --trace-time.
class Stamps {
 public:
  explicit Stamps(std::uint64_t began) : began_(began) {}
  void add(const char* stage) { stamps_.push_back({stage, sys::now_microseconds() - began_}); }
  [[nodiscard]] std::vector<Stamp> take() { return std::move(stamps_); }

 private:
  std::uint64_t began_;
  std::vector<Stamp> stamps_;
};

/// plan and supervise don't know each other: this passes the names of refused calls between them.
supervise::ExplainCall explain_with(const plan::Filter& filter) {
  return [&filter](int number, const std::uint64_t(&arguments)[6], int& errno_value) {
    plan::Refusal refusal = filter.explain(number, arguments);
    errno_value = refusal.errno_value;
    return Denial(std::move(refusal));
  };
}

bool has(const plan::Plan& plan, plan::MountKind kind) {
  return std::ranges::any_of(plan.mounts, [&](const plan::Mount& mount) {
    return mount.kind() == kind && !mount.read_only;
  });
}

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

supervise::Settings settings_of(const plan::Plan& plan, const Options& options) {
  supervise::Settings settings{.budgets = plan.budgets};
  settings.cpus = static_cast<int>(std::ceil(plan.budgets.cpus));
  settings.stdout_cap = plan.output.stdout_cap;
  settings.stderr_cap = plan.output.stderr_cap;
  settings.passed_cap = plan.output.passed_cap;
  settings.on_exceed = on_exceed(plan.output.exceed);
  settings.capture = options.capture;
  settings.trial = options.trial;
  settings.kill_on_denied = plan.denied == policy::DeniedCall::kill;
  settings.interactive = plan.interactive;
  settings.memory_is_granted = plan.control_group.granted.memory_bytes == plan.budgets.memory.count;
  settings.outer_events = plan.control_group.outer_events;
  settings.disk_is_host_too = plan::has_live_grant(plan);
  settings.disk_in_folder = plan.disk_in_folder;
  settings.disk_begins_with_copy = has(plan, plan::MountKind::copy);
  settings.full_files_at_start =
      static_cast<std::uint64_t>(std::ranges::count_if(plan.mounts, [&](const plan::Mount& mount) {
        const auto* file = mount.as<plan::mount::File>();
        return file != nullptr && file->content.size() == plan.budgets.file_size.count;
      }));
  settings.explain = explain_with(plan.filter);
  return settings;
}

supervise::OutputForm output_form(const plan::Plan& plan, const Options& options) {
  if (plan.interactive) return supervise::OutputForm::terminal;
  return options.capture ? supervise::OutputForm::captured : supervise::OutputForm::passed;
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

supervise::Watched watch(const spawn::Sandbox& sandbox, cgroup::Group* group,
                         supervise::GrowthMeter& growth, supervise::EntryMeter& entries,
                         const RunNetwork& network) {
  return {.pid = sandbox.pid,
          .pid1 = sandbox.pid1.get(),
          .control = sandbox.control.get(),
          .listener = sandbox.listener.get(),
          .scratch = sandbox.scratch.get(),
          .processes = sandbox.processes.get(),
          .terminal = sandbox.terminal.get(),
          .group = group,
          .growth = &growth,
          .entries = &entries,
          .sockets = network.sockets()};
}

/// cgroup and spawn don't know each other: this tells PID 1 how to enter its control group.
spawn::Placement placement_in(cgroup::Group* group) {
  if (group == nullptr) return {};
  return {.folder = group->folder(), .joins = group->joins()};
}

std::vector<std::string> live_folders(const plan::Plan& plan) {
  std::vector<std::string> folders;
  for (const plan::LiveFolder& folder : plan.live) folders.push_back(folder.source);
  return folders;
}

Status set_limits(const Budgets& budgets, cgroup::Group* group) {
  if (group == nullptr) return {};
  return group->limit(budgets);
}

/// If the memory budget is too small for the sandbox itself, the run ends before the command starts.
Error explain_small_memory(Error error, const plan::Plan& plan, const cgroup::Group* group) {
  if (group == nullptr || !group->limits_memory() || group->memory_kills() == 0) return error;
  return {.kind = ErrorKind::setup,
          .code = "memory-too-small",
          .message = "limits.memory = " + describe(plan.budgets.memory) +
                     " does not hold the sandbox and the start of the command",
          .hint = "what the kernel needs for them counts too: allow at least 8M"};
}

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

/// An outer listener (of a container manager, of WSL2) excludes another one: denials are then reported without names.
Result<plan::Plan> without_listener(const plan::Plan& plan) {
  SBX_TRY(check_denied(plan));
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

/// If the file system can't hold whiteouts, a run that hides names can't have its private disk there.
Result<plan::Plan> without_folder(const plan::Plan& plan, const Error& error) {
  plan::Plan in_memory = plan;
  in_memory.disk_in_folder = false;
  in_memory.degraded.push_back({.promise = Promise::disk,
                                .why = error.text(),
                                .instead = "the private disk is in memory all the same"});
  SBX_TRY(plan::check_requirements(in_memory.required, in_memory));
  return in_memory;
}

/// Replaces what this machine can't do by a weaker way, reported as degraded. Returns the error if there is none.
Result<plan::Plan> weaker_plan(const plan::Plan& plan, const host::Host& host, const Error& error) {
  switch (error.retry) {
    case Retry::none:
      break;
    case Retry::with_copies:
      return with_copies(plan, host, error);
    case Retry::disk_in_memory:
      return without_folder(plan, error);
    case Retry::without_listener:
      return without_listener(plan);
  }
  return fail(error);
}

bool hides_names_in_overlays(const plan::Plan& plan) {
  return std::ranges::any_of(plan.mounts, [](const plan::Mount& mount) {
    const auto* overlay = mount.as<plan::mount::Overlay>();
    return overlay != nullptr && !overlay->veils.empty();
  });
}

/// The private disk of one run if it is no tmpfs, and the copies on it.
class OwnDisk {
 public:
  Status prepare(const plan::Plan& plan, const spawn::MappedIdentity& identity,
                 const std::string& state) {
    if (has(plan, plan::MountKind::copy))
      disk_.fill = [&](int scratch) {
        const auto done = workspace::fill_copies(plan, scratch, identity.uid_on_host,
                                                 identity.gid_on_host, left_);
        ::clock_gettime(CLOCK_REALTIME_COARSE, &filled_);
        return done;
      };
    if (!plan.disk_in_folder) return {};
    folder_ = std::make_unique<workspace::DiskFolder>(
        SBX_TRY(workspace::DiskFolder::make(state, identity.uid_on_host, identity.gid_on_host)));
    if (!folder_->takes_overlays() && has(plan, plan::MountKind::overlay))
      return fail(
          Error{.kind = ErrorKind::setup,
                .code = "no-overlay",
                .message = "the file system of '" + state + "' can't hold what an overlay writes",
                .retry = Retry::with_copies});
    if (!folder_->takes_whiteouts() && hides_names_in_overlays(plan))
      return fail(
          Error{.kind = ErrorKind::setup,
                .code = "no-whiteouts",
                .message = "the file system of '" + state + "' can't hold what hides denied names",
                .retry = Retry::disk_in_memory});
    place_ = {folder_->path(), folder_->device(), folder_->inode()};
    disk_.folder = &place_;
    return {};
  }

  [[nodiscard]] const spawn::Disk& disk() const { return disk_; }

  void tell(Outcome& outcome) const {
    for (const workspace::Left& each : left_)
      outcome.degraded.push_back({.promise = Promise::workspace_mode,
                                  .why = each.path + ": " + each.why,
                                  .instead = "it is not in the copy"});
  }

  void hand_to(workspace::Copy& copy) {
    copy.disk = std::move(folder_);
    copy.filled = filled_;
  }

 private:
  std::unique_ptr<workspace::DiskFolder> folder_;
  spawn::DiskPlace place_;
  spawn::Disk disk_;
  std::vector<workspace::Left> left_;
  timespec filled_{};
};

/// Lists the run for as long as it is supervised.
void list_in(supervise::Settings& settings, Announcement& announcement) {
  settings.attach = [&announcement, inner = std::move(settings.attach)](EventLoop& loop) -> Status {
    SBX_TRY(announcement.attach(loop));
    return inner ? inner(loop) : Status();
  };
}

/// PID 1 is dead, so the program's files no longer change. A copy that can't be read doesn't fail the run.
void keep_copy(const plan::Plan& plan, const spawn::Sandbox& sandbox, timespec started,
               Result<std::vector<UniqueFd>> lowers, workspace::Copy& copy, Outcome& outcome) {
  auto opened = lowers
                    ? workspace::open_copy(plan, sandbox.scratch.get(), started, std::move(*lowers))
                    : std::unexpected(std::move(lowers).error());
  if (opened) {
    copy = std::move(*opened);
    return;
  }
  outcome.degraded.push_back({.promise = Promise::changes, .why = opened.error().text()});
  copy.failure = std::move(opened).error();
}

/// Never later than the time stamp of a file written from now on: those use this clock, or a finer one since Linux
/// 6.13.
std::int64_t coarse_clock_nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

Result<Outcome> attempt(const plan::Plan& plan, const host::Host& host, const Options& options,
                        Stamps& stamps) {
  const spawn::MappedIdentity identity = SBX_TRY(spawn::acquire_identity(host));
  const uid_t owner = identity.changes_ids ? identity.uid_on_host : static_cast<uid_t>(-1);
  supervise::StreamPair streams = SBX_TRY(supervise::make_streams(
      stdin_from(plan.stdin_mode), plan.stdin_file, output_form(plan, options), owner));
  const supervise::SignalScope signals = SBX_TRY(supervise::SignalScope::make());
  SBX_TRY(set_limits(plan.budgets, options.group));
  stamps.add("acquire");

  for (const std::string& place : plan.state_folders)
    SBX_TRY(workspace::make_state_reserved(place));
  RunNetwork network(plan.network, memory_is_polled(plan, options.group));
  SBX_TRY(network.prepare());
  auto lowers = options.copy != nullptr ? workspace::open_lowers(plan) : std::vector<UniqueFd>();
  const timespec started = workspace::file_clock();
  const std::int64_t began = coarse_clock_nanoseconds();
  OwnDisk disk;
  SBX_TRY(disk.prepare(plan, identity, options.state_folder));
  spawn::ChildStreams child_streams{std::move(streams.child_in), std::move(streams.child_out),
                                    std::move(streams.child_err)};
  supervise::EntryMeter entries(live_folders(plan));
  auto growth = SBX_TRY(supervise::GrowthMeter::make(plan.live_in_memory, plan.live_on_overlay));
  auto spawned = spawn::spawn({.plan = plan,
                               .host = host,
                               .identity = identity,
                               .network = network.request(),
                               .disk = disk.disk(),
                               .streams = std::move(child_streams),
                               .arguments = options.arguments,
                               .placement = placement_in(options.group),
                               .stamp = [&](const char* stage) { stamps.add(stage); }});
  if (!spawned) return fail(explain_small_memory(std::move(spawned).error(), plan, options.group));
  const spawn::Sandbox sandbox = std::move(*spawned);

  Sought sought(plan, host);
  supervise::Settings settings = settings_of(plan, options);
  if (options.events != nullptr)
    options.events->started({options.id, options.policy, plan.command});
  network.live_in(settings, options.events);
  std::ranges::move(sought.notes(), std::back_inserter(settings.notes));
  std::optional<Announcement> announcement;  // created after the clone: not inherited
  if (!options.id.empty()) list_in(settings, announcement.emplace(options.id, options.policy));
  Outcome outcome = SBX_TRY(
      supervise::supervise(settings, watch(sandbox, options.group, growth, entries, network),
                           {.streams = std::move(streams.supervisor), .events = options.events},
                           {.signals = &signals,
                            .cancel = options.cancel,
                            .parent = options.parent,
                            .readers = options.readers}));
  network.put_into(outcome);
  std::ranges::move(sought.denials(), std::back_inserter(outcome.denials));
  if (plan.control_group.cpu_time != host::Means::none)
    outcome.cpu_time_means = host::name_of(plan.control_group.cpu_time);
  std::ranges::copy(growth.degraded(), std::back_inserter(outcome.degraded));
  outcome.degraded.insert(outcome.degraded.begin(), sandbox.degraded.begin(),
                          sandbox.degraded.end());
  disk.tell(outcome);
  plan::note_appeared(plan, host, began, outcome);
  if (options.copy != nullptr) {
    keep_copy(plan, sandbox, started, std::move(lowers), *options.copy, outcome);
    disk.hand_to(*options.copy);
  }
  return outcome;
}

}  // namespace

Result<Outcome> run(plan::Plan& plan, const host::Host& host, const Options& options) {
  Stamps stamps(options.started_microseconds);
  stamps.add("plan");
  workspace::sweep_disk_folders(options.state_folder);
  Result<Outcome> outcome = attempt(plan, host, options, stamps);
  std::set<Retry> tried{Retry::none};
  while (!outcome && tried.insert(outcome.error().retry).second) {
    plan = SBX_TRY(weaker_plan(plan, host, outcome.error()));
    outcome = attempt(plan, host, options, stamps);
  }
  if (!outcome) return outcome;
  stamps.add("end");
  outcome->stamps = stamps.take();
  return outcome;
}

}  // namespace sbx::run
