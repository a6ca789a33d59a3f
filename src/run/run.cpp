#include "run/run.hpp"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/capabilities.hpp"
#include "base/signals.hpp"
#include "base/sys.hpp"
#include "cgroup/group.hpp"
#include "hints/hints.hpp"
#include "plan/appeared.hpp"
#include "plan/enforcement.hpp"
#include "plan/files/disk.hpp"
#include "policy/network_match.hpp"
#include "run/network.hpp"
#include "run/own_disk.hpp"
#include "run/settings.hpp"
#include "run/sought.hpp"
#include "run/under_way.hpp"
#include "run/weaker_plan.hpp"
#include "supervise/supervisor.hpp"
#include "workspace/copy.hpp"
#include "workspace/duplicate.hpp"
#include "workspace/lost.hpp"
#include "workspace/placeholders.hpp"
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

supervise::Watched watch(supervise::Tree& tree, const spawn::Sandbox& sandbox,
                         supervise::GrowthMeter& growth, supervise::EntryMeter& entries,
                         const RunNetwork& network) {
  return {.tree = tree,
          .listener = sandbox.listener.get(),
          .scratch = sandbox.scratch.get(),
          .terminal = sandbox.terminal.get(),
          .growth = &growth,
          .entries = &entries,
          .sockets = network.sockets()};
}

Status set_limits(const plan::Plan& plan, cgroup::Group* group) {
  if (group == nullptr) return {};
  return group->limit(plan.budgets, plan.identity.own_tasks());
}

/// Lists the run for as long as it is supervised.
void list_in(supervise::Settings& settings, Announcement& announcement) {
  settings.attach = [&announcement, inner = std::move(settings.attach)](EventLoop& loop) -> Status {
    SBX_TRY(announcement.attach(loop));
    return inner ? inner(loop) : Status();
  };
}

/// First, because the first note of a call decides: what looks at one would let it go on.
void serve(supervise::Settings& settings, supervise::UnixSockets& sockets) {
  std::vector<supervise::Note> notes = sockets.notes();
  settings.notes.insert(settings.notes.begin(), std::make_move_iterator(notes.begin()),
                        std::make_move_iterator(notes.end()));
  settings.attach = [&sockets, inner = std::move(settings.attach)](EventLoop& loop) -> Status {
    sockets.attach(loop);
    return inner ? inner(loop) : Status();
  };
  settings.detach = [&sockets, inner = std::move(settings.detach)] {
    sockets.detach();
    if (inner) inner();
  };
}

/// PID 1 is dead, so the program's files no longer change. A copy that can't be read doesn't fail
/// the run.
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

/// After the end of PID 1.
void tell_lost_files(const plan::Plan& plan, const spawn::Sandbox& sandbox, const OwnDisk& disk,
                     Outcome& outcome) {
  constexpr std::size_t kMostNames = 100;
  const workspace::Lost lost =
      workspace::lost_names(plan, sandbox.scratch.get(), kMostNames,
                            [&disk](workspace::Copy& copy) { disk.describe(copy); });
  if (!lost.names.empty() || !lost.changed.empty())
    outcome.hints.push_back(
        hints::about_lost_files(lost.names, lost.are_all, lost.changed, plan.command));
  if (!lost.in_home.empty()) outcome.hints.push_back(hints::about_lost_home(lost.in_home));
}

/// Never later than the time stamp of a file written from now on: those use this clock, or a finer
/// one since Linux 6.13.
std::int64_t coarse_clock_nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

Result<Outcome> attempt(const plan::Plan& plan, const host::Host& host, const Options& options,
                        const supervise::SignalScope& signals, Stamps& stamps) {
  const spawn::MappedIdentity identity = SBX_TRY(spawn::acquire_identity(plan.identity, host));
  const uid_t owner = identity.changes_ids ? identity.uid_on_host : static_cast<uid_t>(-1);
  supervise::StreamPair streams = SBX_TRY(supervise::make_streams(
      stdin_from(plan.stdin_mode), plan.stdin_file, output_form(plan, options.capture), owner));
  SBX_TRY(set_limits(plan, options.group));
  stamps.add("acquire");

  for (const std::string& place : plan.state_directories)
    SBX_TRY(workspace::make_state_reserved(place));
  RunNetwork network(plan.network, memory_is_polled(plan, options.group));
  SBX_TRY(network.prepare());
  auto lowers = options.copy != nullptr ? workspace::open_lowers(plan) : std::vector<UniqueFd>();
  const timespec started = workspace::file_clock();
  const std::int64_t began = coarse_clock_nanoseconds();
  OwnDisk disk;
  SBX_TRY(disk.prepare(plan, identity, options.state_directory, options.copied,
                       [] { return signals::pending_end() != 0; }));
  spawn::ChildStreams child_streams{std::move(streams.child_in), std::move(streams.child_out),
                                    std::move(streams.child_err)};
  supervise::EntryMeter entries(live_directories(plan));
  auto growth = SBX_TRY(supervise::GrowthMeter::make(plan.live_in_memory, plan.live_on_overlay));
  std::vector<pid_t> other_children;
  if (plan.identity.is_outside_namespaces()) {
    SBX_TRY(supervise::KeptTree::make_reaper());
    other_children = supervise::KeptTree::own_children();
  }
  auto spawned = spawn::spawn({.plan = plan,
                               .host = host,
                               .identity = identity,
                               .network = network.request(),
                               .disk = disk.disk(),
                               .streams = std::move(child_streams),
                               .arguments = options.arguments,
                               .placement = placement_in(options.group),
                               .stamp = [&](const char* stage) { stamps.add(stage); },
                               .waits = options.set_up,
                               .lock = disk.memory().lock()});
  if (!spawned && plan.identity.is_outside_namespaces())
    supervise::KeptTree::wait_for_rest(other_children);
  if (!spawned) return fail(explain_small_memory(std::move(spawned).error(), plan, options.group));
  if (UniqueFd files = disk.take_files(); files.valid()) spawned->scratch = std::move(files);
  const spawn::Sandbox sandbox = std::move(*spawned);

  Sought sought(plan, host);
  supervise::Settings settings =
      settings_of(plan, {.capture = options.capture, .trial = options.trial});
  settings.disk_before = sandbox.disk_used;
  if (options.events != nullptr)
    options.events->started({options.id, options.policy, plan.command});
  network.live_in(settings, options.events);
  auto served = SBX_TRY(owner_calls(plan));
  if (served) std::ranges::move(served->notes(), std::back_inserter(settings.notes));
  const auto sockets = SBX_TRY(unix_sockets(plan, sandbox, identity));
  if (sockets) serve(settings, *sockets);
  auto tasks = task_limit(plan, sandbox);
  if (tasks) std::ranges::move(tasks->notes(), std::back_inserter(settings.notes));
  std::ranges::move(sought.notes(), std::back_inserter(settings.notes));
  std::optional<Announcement> announcement;  // created after the clone: not inherited
  if (!options.id.empty()) list_in(settings, announcement.emplace(options.id, options.policy));
  const auto tree =
      tree_of(sandbox, plan.identity, identity, options.group, std::move(other_children));
  std::optional<WithoutCapabilities> without(std::in_place, plan.identity.callers_own);
  Outcome outcome = SBX_TRY(
      supervise::supervise(settings, watch(*tree, sandbox, growth, entries, network),
                           {.streams = std::move(streams.supervisor), .events = options.events},
                           {.signals = &signals,
                            .cancel = options.cancel,
                            .parent = options.parent,
                            .readers = options.readers}));
  without.reset();
  network.put_into(outcome);
  std::ranges::move(sought.denials(), std::back_inserter(outcome.denials));
  if (plan.control_group.cpu_time != host::Means::none)
    outcome.cpu_time_means = host::name_of(plan.control_group.cpu_time);
  std::ranges::copy(growth.degraded(), std::back_inserter(outcome.degraded));
  outcome.degraded.insert(outcome.degraded.begin(), sandbox.degraded.begin(),
                          sandbox.degraded.end());
  disk.tell(outcome.degraded);
  std::ranges::move(disk.memory().clear(), std::back_inserter(outcome.degraded));
  plan::note_appeared(plan, host, began, outcome);
  if (options.tells_lost_files && exit_status_of(outcome.verdict) == 0)
    tell_lost_files(plan, sandbox, disk, outcome);
  if (options.copy != nullptr) {
    keep_copy(plan, sandbox, started, std::move(lowers), *options.copy, outcome);
    disk.hand_to(*options.copy);
  }
  return outcome;
}

}  // namespace

Outcome cancelled_before_start(int signal) {
  return {.verdict = Cancelled{signal},
          .detail = std::string("cancelled by SIG") + ::sigabbrev_np(signal) +
                    " before the command began"};
}

Result<Outcome> run(plan::Plan& plan, const host::Host& host, const Options& options) {
  Stamps stamps(options.started_microseconds);
  stamps.add("plan");
  workspace::sweep_disk_directories(options.state_directory);
  const workspace::Placeholders placeholders(plan);  // removed when nothing of the run is left
  // One for all attempts: what came during one of them is not lost.
  const supervise::SignalScope signals = SBX_TRY(supervise::SignalScope::make());
  Result<Outcome> outcome = attempt(plan, host, options, signals, stamps);
  std::set<Retry> tried{Retry::none};
  while (!outcome && signals::pending_end() == 0 && tried.insert(outcome.error().retry).second) {
    plan = SBX_TRY(weaker_plan(plan, host, outcome.error()));
    outcome = attempt(plan, host, options, signals, stamps);
  }
  if (const int signal = signals::pending_end(); !outcome && signal != 0)
    outcome = cancelled_before_start(signal);
  if (!outcome) return outcome;
  stamps.add("end");
  outcome->stamps = stamps.take();
  return outcome;
}

}  // namespace sbx::run
