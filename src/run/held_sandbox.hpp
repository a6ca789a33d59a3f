#pragma once

#include <time.h>

#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.hpp"
#include "base/events.hpp"
#include "cgroup/group.hpp"
#include "host/host.hpp"
#include "plan/files/later.hpp"
#include "plan/plan.hpp"
#include "policy/policy.hpp"
#include "run/launch.hpp"
#include "run/network.hpp"
#include "run/own_disk.hpp"
#include "spawn/spawn.hpp"
#include "supervise/meters/budget_watch.hpp"
#include "supervise/meters/entry_meter.hpp"
#include "supervise/meters/growth_meter.hpp"
#include "supervise/tree.hpp"
#include "workspace/copy.hpp"
#include "workspace/new_names.hpp"
#include "workspace/placeholders.hpp"

namespace sbx::run {

/// A sandbox that stays, without a command: its PID 1 makes calls (call.hpp). What calls share
/// belongs to it: files, network, and the budgets of memory, processes, disk and CPUs. The process
/// that starts it is the session's; it must be single-threaded and know nothing else, because PID 1
/// is a copy of it. Destroying it ends all its processes.
class HeldSandbox {
 public:
  /// Reads the policy, looks at the machine, makes the plan, builds the sandbox. Of `request` it
  /// uses policies, overrides, `program` (with `hold`) and variables. `meanwhile`: work to do while
  /// PID 1, a copy of this process, sets up the sandbox; done again where a weaker one is tried.
  using Meanwhile =
      std::function<void(const policy::Policy& policy, const std::string& state_directory)>;
  [[nodiscard]] static std::expected<std::unique_ptr<HeldSandbox>, policy::Findings> start(
      const Request& request, const Sinks& sinks, const Meanwhile& meanwhile);
  HeldSandbox(const HeldSandbox&) = delete;
  HeldSandbox& operator=(const HeldSandbox&) = delete;
  ~HeldSandbox();

  [[nodiscard]] const policy::Policy& policy() const { return policy_; }
  [[nodiscard]] const plan::Plan& plan() const { return plan_; }
  [[nodiscard]] const host::Host& host() const { return host_; }
  [[nodiscard]] const std::string& state_directory() const { return state_directory_; }
  [[nodiscard]] const spawn::Sandbox& sandbox() const { return sandbox_; }
  [[nodiscard]] uid_t owner() const;  ///< host uid of its files; -1: the caller's

  /// Errors: as LaterNames::look().
  [[nodiscard]] Status look_for_denied_names(std::vector<Degraded>& degraded) const {
    return later_names_->look(plan_, host_, degraded);
  }

  struct Hooks {
    network::HearsRefusals refused;
    /// A budget of the whole sandbox is spent: a call must end, or all.
    std::function<void(Budget)> spent;
    std::function<void()> ended;  ///< PID 1 is dead, and with it everything
  };
  /// From here on its network works and its budgets are watched. Errors: internal.
  [[nodiscard]] Status attach(EventLoop& loop, Hooks hooks);
  void detach();
  /// The budgets are not looked at while no call runs: an idle session does not wake.
  void rest() { budgets_->rest(); }
  void resume() { budgets_->resume(); }

  /// Borrowed: what a process forked from this one needs to run calls. It may close everything
  /// else.
  [[nodiscard]] std::vector<int> descriptors_for_calls() const;
  /// A control group for one call; null where there is none to be had.
  [[nodiscard]] std::unique_ptr<cgroup::Group> make_call_group() const;
  /// Removes the groups of calls whose process is dead.
  void sweep_call_groups() const;
  /// Kills every process of the sandbox.
  void end();
  /// True where no further call has room: the kernel would end a process to start one.
  [[nodiscard]] bool memory_is_full() const;
  /// Bytes of resident memory of a process and those below it. Needs no privileges.
  [[nodiscard]] std::uint64_t memory_below(pid_t init) const;
  /// The number of tasks below the init of a call.
  [[nodiscard]] std::uint64_t tasks_below(pid_t init) const;
  /// True where no program of the session can start another process: limits.processes.
  [[nodiscard]] bool processes_are_used_up() const;
  /// Now: memory of all calls, tasks, bytes on the private disk, CPU time since the start.
  struct Use {
    std::uint64_t memory_bytes = 0;
    std::uint64_t processes = 0;  ///< tasks, without those of sbx
    std::uint64_t disk_bytes = 0;
    std::uint64_t cpu_microseconds = 0;
  };
  [[nodiscard]] Use use() const;
  void expect(const policy::Address& address, std::uint16_t port) {
    network_.expect(address, port);
  }
  /// Traffic and failed destinations so far.
  void put_network_into(Outcome& outcome) { network_.put_into(outcome); }

  /// session.put_aside, and there are live directories.
  [[nodiscard]] bool puts_aside() const { return new_names_.watches(); }
  /// Renames the protected names that have appeared there, and says which.
  [[nodiscard]] std::vector<Denial> put_aside() const;

  /// What the calls have written over the workspace. Call it while they are stopped. Errors: host.
  [[nodiscard]] Result<workspace::Copy> copy() const;

  /// Stops every process of every call, and returns when all have stopped; one in an
  /// uninterruptible system call stops when that is over. By the freezer of a control group, else
  /// by SIGSTOP. Errors: host, also "calls-not-stopped" after 5 s. continue_calls() follows in
  /// either case.
  [[nodiscard]] Status stop_calls();
  /// Wakes them. What had stopped by itself before stays stopped.
  void continue_calls();

 private:
  HeldSandbox(policy::Policy policy, plan::Plan plan, host::Host host, std::string state_directory,
              std::unique_ptr<cgroup::Group> group);
  Status build(ArgumentArea arguments, const Sinks& sinks, const Meanwhile& meanwhile);
  [[nodiscard]] pid_t pid() const { return sandbox_.pid; }
  [[nodiscard]] supervise::ProcessList processes_below(pid_t init) const;
  [[nodiscard]] std::uint64_t tasks_of_calls(supervise::ProcessList& processes) const;

  policy::Policy policy_;
  plan::Plan plan_;
  host::Host host_;
  /// What it remembers changes nothing of the sandbox.
  std::unique_ptr<plan::LaterNames> later_names_ = std::make_unique<plan::LaterNames>();
  std::string state_directory_;
  std::unique_ptr<cgroup::Group> group_;
  spawn::MappedIdentity identity_;
  RunNetwork network_;
  std::optional<workspace::Placeholders> placeholders_;
  workspace::NewNames new_names_;
  std::vector<UniqueFd> lowers_;
  timespec started_{};
  OwnDisk disk_;
  std::unique_ptr<supervise::EntryMeter> entries_;
  std::optional<supervise::GrowthMeter> growth_;
  spawn::Sandbox sandbox_;
  std::optional<supervise::HeldTree> tree_;  ///< from when it stands
  supervise::Settings settings_;
  std::unique_ptr<supervise::BudgetWatch> budgets_;
  EventLoop* loop_ = nullptr;
};

}  // namespace sbx::run
