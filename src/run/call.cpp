#include "run/call.hpp"

#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "base/private_disk.hpp"
#include "base/sys.hpp"
#include "network/offline.hpp"
#include "plan/call.hpp"
#include "plan/files/path_text.hpp"
#include "plan/program/build_directory.hpp"
#include "policy/load.hpp"
#include "run/connect_note.hpp"
#include "run/hints.hpp"
#include "run/session_hints.hpp"
#include "run/settings.hpp"
#include "run/sought.hpp"
#include "workspace/disk.hpp"

namespace sbx::run {
namespace {

spawn::Placement placement_of_call(cgroup::Group* group) {
  if (group == nullptr) return {};
  spawn::Placement placement{.joins = group->joins()};
  if (placement.joins.empty()) placement.move = [group](pid_t init) { return group->move(init); };
  return placement;
}

/// The supervisor's side of one call.
class Call {
 public:
  Call(const HeldSandbox& held, const Request& request, const CallTies& ties, const Sinks& sinks)
      : held_(held), request_(request), ties_(ties), sinks_(sinks) {}

  Answer run() {
    if (const Status planned = plan(); !planned) {
      if (answer_.errors.empty()) answer_.errors.push_back(planned.error());
    } else {
      if (auto outcome = attempt())
        finish(std::move(*outcome));
      else
        answer_.errors.push_back(std::move(outcome).error());
      remove_build();
    }
    for (Error& each : answer_.errors) each = naming_session(std::move(each), ties_.session);
    return std::move(answer_);
  }

 private:
  Status plan() {
    SBX_TRY(narrow());
    answer_.plan = SBX_TRY(
        plan::make_call_plan(ties_.ahead != nullptr ? std::move(ties_.ahead->plan) : held_.plan(),
                             *answer_.policy, held_.host(), request_.program, kind()));
    // sbx's own program copies files that the user names, and runs nothing else.
    if (ties_.image < 0) SBX_TRY(held_.look_for_denied_names(answer_.plan->degraded));
    if (ties_.is_logged && !has_own_wall_time()) answer_.plan->budgets.wall_time = {};
    const bool logged = ties_.is_logged && answer_.plan->output.exceed != policy::Exceed::kill;
    if (logged || ties_.image >= 0)
      answer_.plan->output.passed_cap = Bytes{std::numeric_limits<std::uint64_t>::max()};
    return {};
  }

  /// What a call can't have for itself it must not seem to get: the rest is made when the session
  /// starts.
  [[nodiscard]] Status check_keys() const {
    constexpr std::string_view kOwn[] = {"limits.wall_time", "limits.cpu_time", "limits.file_size",
                                         "limits.open_files", "output"};
    for (const policy::Override& each : request_.overrides)
      if (!each.key.starts_with("output.") && std::ranges::find(kOwn, each.key) == std::end(kOwn))
        return fail(
            Error{.kind = ErrorKind::usage,
                  .code = "not-of-a-call",
                  .message = each.key + " is the session's, and a call can't change it",
                  .hint = each.option == "--env"
                              ? "--env NAME=VALUE gives the call a variable of its own"
                              : "sbx session start with it; a call may lower limits.wall_time, "
                                "cpu_time, file_size and open_files, and output"});
    return {};
  }

  Status narrow() {
    SBX_TRY(check_keys());
    if (ties_.ahead != nullptr && request_.overrides.empty()) {
      answer_.policy = std::move(ties_.ahead->policy);
      return {};
    }
    auto narrowed =
        policy::narrow(held_.policy(), request_.overrides, "session \"" + ties_.session + "\"");
    if (!narrowed) {
      answer_.errors = std::move(narrowed).error();
      return fail(answer_.errors.front());
    }
    answer_.policy = std::move(*narrowed);
    return {};
  }

  [[nodiscard]] plan::CallProgram kind() const {
    if (ties_.interpreter != nullptr) return plan::CallProgram::interpreter;
    return ties_.image >= 0 ? plan::CallProgram::own : plan::CallProgram::of_request;
  }

  /// A background call lives until it ends, or as long as its own option says.
  [[nodiscard]] bool has_own_wall_time() const {
    return std::ranges::any_of(request_.overrides, [](const policy::Override& each) {
      return each.key == "limits.wall_time";
    });
  }

  [[nodiscard]] supervise::Settings settings() {
    const plan::Plan& plan = *answer_.plan;
    supervise::Settings settings = settings_of(plan, {.capture = request_.capture});
    settings.disk_in_directory = false;  // the session watches it
    settings.input_is_sent = ties_.input_is_sent;
    if (plan.counts_tasks) {
      tasks_ = supervise::TaskLimit::of_call(held_.sandbox().pid, held_.plan().budgets.processes);
      std::ranges::move(tasks_->notes(), std::back_inserter(settings.notes));
    }
    if (plan.explain) std::ranges::move(sought_->notes(), std::back_inserter(settings.notes));
    if (plan.network.notes_connect()) {
      if (plan.network.names_attempts()) offline_.emplace(plan.network, std::vector<UniqueFd>());
      settings.notes.push_back(connect_note(offline_ ? &*offline_ : nullptr, ties_.expect));
    }
    return settings;
  }

  [[nodiscard]] spawn::WaitingInit* init() const {
    return ties_.ahead != nullptr && ties_.ahead->init.lives() ? &ties_.ahead->init : nullptr;
  }

  [[nodiscard]] Error memory_full() const {
    return {
        .kind = ErrorKind::setup,
        .code = "session-memory-full",
        .message = "the session's memory of " + describe(held_.plan().budgets.memory) +
                   " is full: calls that run, or files that calls left, leave no room for another",
        .hint = "end calls, or start a session with a limits.disk well below limits.memory"};
  }
  /// With the one who has most of them, and what ends those.
  [[nodiscard]] Error processes_used_up() const {
    const policy::Limits& limits = held_.policy().limits;
    Error error{.kind = ErrorKind::setup,
                .code = "session-processes-used-up",
                .message = "limits.processes of the session (" +
                           std::to_string(limits.processes.value) + ") is used up",
                .origin = limits.processes.origin};
    const MostProcesses most = ties_.most_processes ? ties_.most_processes() : MostProcesses{};
    if (most.who.empty()) return error;
    error.message += ": " + std::to_string(most.count) +
                     (most.count == 1 ? " belongs to " : " belong to ") + most.who;
    error.hint = most.cure + " ends them";
    return error;
  }

  [[nodiscard]] Error explain(Error error) const {
    const bool no_process =
        error.code == "cannot-clone" || error.code == "child-died" || error.errno_value == EAGAIN;
    if (no_process && held_.processes_are_used_up()) return processes_used_up();
    const bool ended = ties_.group != nullptr && ties_.group->memory_kills() > kills_before_;
    return ended || held_.memory_is_full() ? memory_full() : error;
  }

  Result<Outcome> attempt() {
    const plan::Plan& plan = *answer_.plan;
    supervise::StreamPair streams =
        SBX_TRY(supervise::make_streams(stdin_from(plan.stdin_mode), plan.stdin_file,
                                        output_form(plan, request_.capture), held_.owner()));
    // Nobody else reads it, and who holds a read end does not see that the program has closed its.
    if (ties_.input_is_sent) streams.supervisor.in_gauge.reset();
    const supervise::SignalScope signals = SBX_TRY(supervise::SignalScope::make());
    const spawn::NetworkRequest no_network;
    const spawn::Disk no_disk;
    const spawn::MappedIdentity no_identity;
    const auto stamp = [this](const char* stage) {
      answer_.stamps.push_back({stage, sys::now_microseconds() - request_.started_microseconds});
    };
    // The kernel might end the holder, if it is the only process that it can end.
    if (held_.memory_is_full()) return fail(memory_full());
    if (ties_.group != nullptr) {  // made ahead, while other calls ran
      ties_.group->forget_memory_limit();
      kills_before_ = ties_.group->memory_kills();
    }
    const int disk = held_.plan().disk_in_directory ? -1 : held_.sandbox().scratch.get();
    const supervise::Exhausted before = supervise::exhausted(disk);
    const std::uint64_t used_before = sys::used_bytes(disk);
    supervise::FullFiles full_before =
        supervise::files_of_size_on_disk(disk, plan.budgets.file_size.count);
    auto spawned =
        spawn::spawn({.plan = plan,
                      .host = held_.host(),
                      .identity = no_identity,
                      .network = no_network,
                      .disk = no_disk,
                      .streams = {std::move(streams.child_in), std::move(streams.child_out),
                                  std::move(streams.child_err)},
                      .placement = placement_of_call(ties_.group),
                      .stamp = stamp,
                      .role = child::Role::call,
                      .holder = held_.sandbox().control.get(),
                      .init = init(),
                      .image = ties_.image,
                      .kept = ties_.interpreter != nullptr ? ties_.interpreter->descriptors
                                                           : std::vector<int>()});
    if (!spawned) return fail(explain(std::move(spawned).error()));
    spawn::Sandbox sandbox = std::move(*spawned);
    if (ties_.keep_mounts) ties_.keep_mounts(std::move(sandbox.mount_space));
    if (ties_.began) ties_.began(sandbox.pid);
    sought_.emplace(plan, held_.host());
    if (ties_.interpreter != nullptr)
      ties_.interpreter->take_output(std::move(streams.supervisor.out),
                                     std::move(streams.supervisor.err));
    supervise::Settings settings = this->settings();
    settings.exhausted_before = before;
    settings.disk_before = used_before;
    settings.memory_kills_before = kills_before_;
    settings.full_files_before = std::move(full_before);
    if (request_.events != nullptr)
      request_.events->started({request_.id, answer_.policy->name.value, plan.command});
    return supervise(settings, sandbox, signals, std::move(streams.supervisor));
  }

  Result<Outcome> supervise(const supervise::Settings& settings, const spawn::Sandbox& sandbox,
                            const supervise::SignalScope& signals, supervise::Streams streams) {
    EventLoop loop = SBX_TRY(EventLoop::make());
    supervise::CallTree tree(handles_of(sandbox, ties_.group));
    const supervise::Watched watched{
        .tree = tree,
        .listener = sandbox.listener.get(),
        .scratch = held_.plan().disk_in_directory ? -1 : held_.sandbox().scratch.get(),
        .terminal = sandbox.terminal.get()};
    supervise::Supervisor supervisor(loop, settings, watched,
                                     {.streams = std::move(streams), .events = request_.events},
                                     {.signals = &signals,
                                      .cancel = request_.cancel,
                                      .parent = request_.parent,
                                      .readers = request_.readers});
    SBX_TRY(supervisor.start());
    if (ties_.live_in) SBX_TRY(ties_.live_in(loop, supervisor));
    if (ties_.take_of_cell)
      ties_.take_of_cell({.attempts = [this] { return attempts(); },
                          .explain =
                              [this](Outcome& cell, const std::string& directory,
                                     const std::vector<std::string>& operands) {
                                explain_cell(cell, directory, operands);
                              }});
    while (!supervisor.over() || delivers()) {
      SBX_TRY(loop.run_once());
      supervisor.after_turn();
    }
    return supervisor.finish();
  }

  [[nodiscard]] bool delivers() const {
    return ties_.interpreter != nullptr && ties_.interpreter->delivers();
  }

  /// Refused since the last time. The session knows what its gateway refused, the names that
  /// somebody asked for, and those that it has put aside; the rest is the call's own.
  [[nodiscard]] NetworkTrouble attempts() {
    NetworkTrouble all;
    if (offline_) all.refused = offline_->take_denials();
    const bool asked = offline_ && offline_->was_asked();
    const bool is_told = answer_.plan->network.allow_list || asked || held_.puts_aside();
    if (!ties_.trouble || !is_told) return all;
    NetworkTrouble shared = ties_.trouble();
    std::ranges::move(shared.refused, std::back_inserter(all.refused));
    all.failed = std::move(shared.failed);
    return all;
  }

  void explain_cell(Outcome& cell, const std::string& directory,
                    const std::vector<std::string>& operands) {
    if (offline_) cell.loopback_ports = offline_->take_own_ports();
    if (exit_status_of(cell.verdict) == 0) return;
    plan::Plan plan = *answer_.plan;
    for (const std::string& each : {plan.call_directory, directory})
      plan.working_directory = plan::normal(plan::joined(plan.working_directory, each));
    add_hints(cell, *answer_.policy, plan, held_.host(),
              {.operands = operands, .how = kAddToSession, .of_cell = true});
  }

  /// What was compiled for this call alone. Its processes have ended; /tmp belongs to the session.
  void remove_build() const {
    const std::string name = plan::build_directory_of(answer_.plan->command);
    if (name.empty()) return;
    if (const auto tmp = sys::open_at(held_.sandbox().scratch.get(), private_disk::kTmp,
                                      O_RDONLY | O_DIRECTORY | O_NOFOLLOW))
      workspace::remove_tree(tmp->get(), name);
  }

  [[nodiscard]] std::string words_of(const LeftRunning& left) const {
    const bool one = left.count == 1;
    std::string words = std::to_string(left.count) + (one ? " process" : " processes") +
                        " still ran when the command had ended, and " + (one ? "was" : "were") +
                        " ended with the call";
    if (!left.process.empty()) words += ": " + left.process + (one ? "" : " and others");
    return words + "; to keep a server, start it as a call of its own: sbx session exec " +
           ties_.session + " -d -- COMMAND";
  }

  void finish(Outcome outcome) {
    NetworkTrouble network = attempts();
    std::ranges::move(network.refused, std::back_inserter(outcome.denials));
    outcome.network_failures = std::move(network.failed);
    if (offline_) outcome.loopback_ports = offline_->own_ports();
    if (answer_.plan->explain)
      std::ranges::move(sought_->denials(), std::back_inserter(outcome.denials));
    if (ties_.group != nullptr && ties_.group->counts_cpu_time())
      outcome.cpu_time_means = host::name_of(held_.plan().control_group.cpu_time);
    // sbx's own program says itself what it could not write: of a disk that was full before,
    // reading meets nothing.
    if (ties_.image >= 0 && exit_status_of(outcome.verdict) == 0)
      std::erase_if(outcome.limits_met,
                    [](const LimitMet& met) { return met.limit.starts_with("disk"); });
    // The words of sbx's own program are not what the user typed.
    plan::Plan& plan = *answer_.plan;
    if (!plan.call_directory.empty())  // where its relative paths lead
      plan.working_directory =
          plan::normal(plan::joined(plan.working_directory, plan.call_directory));
    if (ties_.image < 0)
      add_hints(outcome, *answer_.policy, *answer_.plan, held_.host(),
                {.operands = request_.program.operands, .how = kAddToSession});
    // A context ends when it is told to, or with its session.
    if (outcome.left_running.count > 0 && ties_.interpreter == nullptr)
      outcome.notes.push_back(words_of(outcome.left_running));
    if (exit_status_of(outcome.verdict) != 0 && held_.processes_are_used_up()) {
      const Error why = processes_used_up();
      outcome.notes.push_back(why.message + (why.hint.empty() ? "" : "; " + why.hint));
    }
    answer_.outcome = std::move(outcome);
    if (sinks_.ended) sinks_.ended(answer_);
  }

  const HeldSandbox& held_;
  const Request& request_;
  const CallTies& ties_;
  const Sinks& sinks_;
  Answer answer_;
  std::optional<Sought> sought_;
  std::optional<network::Offline> offline_;
  std::optional<supervise::TaskLimit> tasks_;
  std::uint64_t kills_before_ = 0;  ///< in the group, before the call
};

}  // namespace

Result<UniqueFd> open_stdin(plan::RunRequest& program) {
  if (program.stdin_mode != plan::StdinMode::file) return UniqueFd();
  UniqueFd file = SBX_TRY(supervise::open_source(program.stdin_file));
  program.stdin_file =
      "/proc/self/fd/0";  // opened there anew: a FIFO may still wait for its writer
  return file;
}

CallAhead make_ahead(const HeldSandbox& held, cgroup::Group* group) {
  CallAhead ahead{.init = {}, .policy = held.policy(), .plan = held.plan()};
  if (held.memory_is_full()) return ahead;
  auto init =
      spawn::make_waiting_init(held.plan(), held.sandbox().control.get(), placement_of_call(group));
  if (init) ahead.init = std::move(*init);
  return ahead;
}

Answer call(const HeldSandbox& held, const Request& request, const CallTies& ties,
            const Sinks& sinks) {
  return Call(held, request, ties, sinks).run();
}

}  // namespace sbx::run
