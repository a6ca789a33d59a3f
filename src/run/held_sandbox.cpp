#include "run/held_sandbox.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

#include "base/process.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "plan/make_plan.hpp"
#include "run/settings.hpp"
#include "run/weaker_plan.hpp"
#include "supervise/meters/process_tree.hpp"
#include "workspace/state.hpp"

namespace sbx::run {
namespace {

/// A session's own budgets: calls have those of time and output.
supervise::Settings settings_of_all(const plan::Plan& plan, Milliseconds cpu_time) {
  supervise::Settings settings = settings_of(plan, {});
  settings.budgets.wall_time = {};
  settings.budgets.cpu_time = cpu_time;
  return settings;
}

}  // namespace

HeldSandbox::HeldSandbox(policy::Policy policy, plan::Plan plan, host::Host host,
                         std::string state_directory, std::unique_ptr<cgroup::Group> group)
    : policy_(std::move(policy)),
      plan_(std::move(plan)),
      host_(std::move(host)),
      state_directory_(std::move(state_directory)),
      group_(std::move(group)),
      network_(plan_.network, memory_is_polled(plan_, group_.get())) {}

HeldSandbox::~HeldSandbox() {
  detach();
  end();
}

void HeldSandbox::end() {
  if (!tree_) return;
  tree_->kill();
  (void)tree_->reap();
}

uid_t HeldSandbox::owner() const {
  return identity_.changes_ids ? identity_.uid_on_host : static_cast<uid_t>(-1);
}

std::expected<std::unique_ptr<HeldSandbox>, policy::Findings> HeldSandbox::start(
    const Request& request, const Sinks& sinks, const Meanwhile& meanwhile) {
  auto prepared = prepare(request, sinks);
  if (!prepared) return std::unexpected(std::move(prepared).error());
  plan::Plan plan = std::move(prepared->plan);
  std::set<Retry> tried{Retry::none};
  bool is_planned_anew = false;
  for (;;) {
    std::unique_ptr<HeldSandbox> held(
        new HeldSandbox(std::move(prepared->policy), std::move(plan), std::move(prepared->host),
                        prepared->state_directory, std::move(prepared->group)));
    const Status built = held->build(request.arguments, sinks, meanwhile);
    if (built) {
      held->host_.on_walk = {};  // calls walk too, and nobody waits for the start any more
      return held;
    }
    const Error error = built.error();
    prepared->policy = held->policy_;
    prepared->host = held->host_;
    prepared->group = std::move(held->group_);
    plan = held->plan_;
    if (is_outdated(error) && !std::exchange(is_planned_anew, true)) {
      auto again = plan::make_plan(prepared->policy, prepared->host, prepared->program);
      if (!again) return std::unexpected(policy::Findings{std::move(again).error()});
      plan = std::move(*again);
      tried = {Retry::none};
      continue;
    }
    if (!tried.insert(error.retry).second) return std::unexpected(policy::Findings{error});
    auto weaker = weaker_plan(plan, prepared->host, error);
    if (!weaker) {
      Error why = std::move(weaker).error();
      if (why.retry == Retry::without_namespaces &&
          prepared->policy.isolation.value == policy::Isolation::automatic) {
        prepared->host.refuses_namespaces = true;
        const auto without = plan::make_plan(prepared->policy, prepared->host, prepared->program);
        if (!without) add_why_not_without(without.error(), why);
      }
      return std::unexpected(policy::Findings{std::move(why)});
    }
    plan = std::move(*weaker);
  }
}

/// As a run's, run.cpp: acquire, then spawn.
Status HeldSandbox::build(ArgumentArea arguments, const Sinks& sinks, const Meanwhile& meanwhile) {
  identity_ = SBX_TRY(spawn::acquire_identity(plan_.identity, host_));
  if (group_ != nullptr) {
    SBX_TRY(group_->hold());
    // The inits of calls count as tasks of the group.
    SBX_TRY(group_->limit(plan_.budgets, plan_.identity.own_tasks() + plan_.calls));
  }
  for (const std::string& place : plan_.state_directories)
    SBX_TRY(workspace::make_state_reserved(place));
  placeholders_.emplace(plan_);
  if (policy_.session.put_aside.value) new_names_ = SBX_TRY(workspace::NewNames::of(plan_));
  SBX_TRY(network_.prepare());
  lowers_ = SBX_TRY(workspace::open_lowers(plan_));
  started_ = workspace::file_clock();
  SBX_TRY(disk_.prepare(plan_, identity_, state_directory_, sinks.copied));
  entries_ = std::make_unique<supervise::EntryMeter>(live_directories(plan_));
  growth_ = SBX_TRY(supervise::GrowthMeter::make(plan_.live_in_memory, plan_.live_on_overlay));
  auto spawned = spawn::spawn({.plan = plan_,
                               .host = host_,
                               .identity = identity_,
                               .network = network_.request(),
                               .disk = disk_.disk(),
                               .streams = {},
                               .arguments = arguments,
                               .placement = placement_in(group_.get()),
                               .stamp = [](const char*) {},
                               .waits = sinks.set_up,
                               .meanwhile = [&] { meanwhile(policy_, state_directory_); },
                               .role = child::Role::holder});
  if (!spawned) return fail(explain_small_memory(std::move(spawned).error(), plan_, group_.get()));
  sandbox_ = std::move(*spawned);
  tree_.emplace(handles_of(sandbox_, group_.get()));
  plan_.degraded.insert(plan_.degraded.end(), sandbox_.degraded.begin(), sandbox_.degraded.end());
  disk_.tell(plan_.degraded);
  std::ranges::copy(growth_->degraded(), std::back_inserter(plan_.degraded));
  settings_ = settings_of_all(plan_, policy_.session.cpu_time.value);
  settings_.disk_before = sandbox_.disk_used;
  return {};
}

Status HeldSandbox::attach(EventLoop& loop, Hooks hooks) {
  loop_ = &loop;
  SBX_TRY(tree_->watch(loop, hooks.ended));
  SBX_TRY(network_.attach(loop, hooks.refused));
  budgets_ = std::make_unique<supervise::BudgetWatch>(
      loop, settings_,
      supervise::BudgetWatch::Sandbox{.tree = *tree_,
                                      .scratch = sandbox_.scratch.get(),
                                      .growth = &*growth_,
                                      .entries = entries_.get(),
                                      .sockets = network_.sockets()},
      supervise::BudgetWatch::Hooks{.ended = [] { return false; }, .spent = hooks.spent});
  return budgets_->start();
}

std::vector<Denial> HeldSandbox::put_aside() const {
  std::vector<Denial> refused;
  for (const workspace::NewName& each : new_names_.put_aside(*host_.files)) {
    const std::string now =
        each.now.empty() ? std::string("it could not be renamed: ") + ::strerrordesc_np(each.error)
                         : "it is now " + printable(each.now);
    refused.push_back({.kind = DenialKind::name,
                       .what = printable(each.path),
                       .rule = std::string(each.why) + ": " + now + " (session.put_aside)",
                       .risk = std::string(each.why),
                       .options = {"--set", "session.put_aside=false"}});
  }
  return refused;
}

void HeldSandbox::detach() {
  if (loop_ == nullptr) return;
  network_.detach();
  tree_->leave();
  loop_ = nullptr;
}

std::vector<int> HeldSandbox::descriptors_for_calls() const {
  std::vector<int> all{sandbox_.control.get(), sandbox_.scratch.get(), sandbox_.processes.get()};
  if (group_ != nullptr) std::ranges::copy(group_->descriptors(), std::back_inserter(all));
  return all;
}

void HeldSandbox::sweep_call_groups() const {
  if (group_ != nullptr) group_->sweep_inner();
}

std::unique_ptr<cgroup::Group> HeldSandbox::make_call_group() const {
  if (group_ == nullptr) return nullptr;
  auto inner = group_->make_inner();
  // Without one the call's CPU time is counted by process.
  return inner ? std::move(*inner) : nullptr;
}

bool HeldSandbox::memory_is_full() const {
  if (group_ == nullptr || !group_->limits_memory()) return false;
  constexpr std::uint64_t kOfCall = std::uint64_t{2} << 20;  // its init, and the kernel's part
  const std::uint64_t limit = plan_.budgets.memory.count;
  return group_->memory_used() + kOfCall > limit && group_->memory_held() + kOfCall > limit;
}

namespace {

/// The number that a process of the sandbox has in the PID namespace of the sandbox. 0: it has
/// ended.
pid_t number_inside(pid_t process) {
  const std::vector<pid_t> numbers = process::numbers(process::open(process).get());
  return numbers.size() < 2 ? 0 : numbers[1];
}

}  // namespace

supervise::ProcessList HeldSandbox::processes_below(pid_t init) const {
  const int own = sandbox_.processes.get();
  auto processes = supervise::ProcessList::below(own < 0 ? init : number_inside(init), own);
  processes.refresh();
  return processes;
}

std::uint64_t HeldSandbox::memory_below(pid_t init) const {
  supervise::ProcessList processes = processes_below(init);
  return supervise::resident_sum(processes);
}

std::uint64_t HeldSandbox::tasks_below(pid_t init) const {
  return processes_below(init).tasks();
}

/// Without those of sbx: the inits of calls are its own.
std::uint64_t HeldSandbox::tasks_of_calls(supervise::ProcessList& processes) const {
  const std::uint64_t tasks = processes.tasks();
  const auto inits = processes.is_of_host()
                         ? std::ranges::count(processes.all(), sandbox_.pid,
                                              &supervise::ProcessList::Process::parent)
                         : std::ssize(processes.children_of_pid1());
  return tasks - std::min(tasks, static_cast<std::uint64_t>(inits));
}

/// A call's process asks: of the session's meters it has copies, whose descriptors it has closed.
bool HeldSandbox::processes_are_used_up() const {
  supervise::ProcessList processes(sandbox_.pid, sandbox_.processes.get());
  processes.refresh();
  return tasks_of_calls(processes) >= plan_.budgets.processes;
}

HeldSandbox::Use HeldSandbox::use() const {
  Use use;
  struct statfs facts{};
  if (!plan_.disk_in_directory && ::fstatfs(sandbox_.scratch.get(), &facts) == 0)
    use.disk_bytes = (facts.f_blocks - facts.f_bfree) * static_cast<std::uint64_t>(facts.f_bsize);
  supervise::ProcessList processes(sandbox_.pid, sandbox_.processes.get());
  processes.refresh();
  use.processes = tasks_of_calls(processes);
  const bool counted = group_ != nullptr && group_->limits_memory();
  use.memory_bytes =
      counted ? group_->memory_used() : supervise::resident_sum(processes) + use.disk_bytes;
  use.cpu_microseconds = budgets_ == nullptr ? 0 : budgets_->cpu_microseconds();
  return use;
}

Result<workspace::Copy> HeldSandbox::copy() const {
  std::vector<UniqueFd> lowers;
  for (const UniqueFd& lower : lowers_)
    lowers.emplace_back(::fcntl(lower.get(), F_DUPFD_CLOEXEC, 3));
  auto copy =
      SBX_TRY(workspace::open_copy(plan_, sandbox_.scratch.get(), started_, std::move(lowers)));
  disk_.describe(copy);
  return copy;
}

Status HeldSandbox::stop_calls() {
  return tree_->stop_and_wait();
}

void HeldSandbox::continue_calls() {
  tree_->wake_all();
}

}  // namespace sbx::run
