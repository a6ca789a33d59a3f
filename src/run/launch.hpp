#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/argument_area.hpp"
#include "base/copied.hpp"
#include "base/events.hpp"
#include "base/person.hpp"
#include "base/result.hpp"
#include "base/tell.hpp"
#include "cgroup/group.hpp"
#include "changes/bring_out.hpp"
#include "host/host.hpp"
#include "plan/plan.hpp"
#include "plan/request.hpp"
#include "policy/load.hpp"
#include "policy/policy.hpp"
#include "run/variables.hpp"
#include "spawn/spawn.hpp"

/// The entry point for everything that starts a sandbox: `sbx run`, `sbx doctor`, workers. Read
/// this first.
namespace sbx::run {

/// Which call of which session a record is of.
struct CallName {
  std::string session;
  std::string session_id;
  std::uint64_t number = 0;
};

/// What a front end asks of one sandbox.
struct Request {
  std::vector<policy::PolicyOperand> policies;  ///< empty: the user's default policy
  std::vector<policy::Override> overrides;      ///< weakest first
  std::optional<policy::Policy> policy;         ///< already parsed; replaces the two above
  plan::RunRequest program;
  std::vector<VariableSource> variables;  ///< read and added to those of `program`
  changes::BringOutOptions bring_out;
  bool for_person = false;     ///< a person reads the hints: hints::Reader
  bool capture = false;        ///< keep the program's output for the answer
  bool lists_changes = false;  ///< the answer lists the changes, whatever `bring_out` says
  /// A run to find out what is `degraded`: measurements that a short run would not reach start at
  /// once.
  bool trial = false;
  std::string id;  ///< run id, also its name in `sbx ps`; empty: not listed
  /// The run is cancelled when the other ends of all these pipes are closed.
  std::vector<int> readers;
  int parent = -1;           ///< a pidfd: the run is cancelled when that process ends
  int cancel = -1;           ///< a descriptor: the run is cancelled when it is readable or hung up
  Events* events = nullptr;  ///< receives events during the run; may be null
  ArgumentArea arguments{};  ///< of this process; the sandbox's PID 1 wipes its copy
  /// CLOCK_MONOTONIC time at which the stages of --trace-time begin.
  std::uint64_t started_microseconds = 0;
  std::optional<CallName> call;  ///< of a call in a held sandbox
};

/// The result. Fields of steps that the run did not reach are empty.
struct Answer {
  /// Why nothing ran, or what failed after the command had ended (then `outcome` is set too). A
  /// policy may have several mistakes; any other failure is one entry.
  policy::Findings errors;
  /// `record = "keep"` in the user's config.toml; empty: not read.
  std::optional<bool> keeps_record;
  std::string state_directory;           ///< the user's; empty: none
  std::optional<policy::Policy> policy;  ///< merged
  std::optional<plan::Plan> plan;        ///< the plan that ran, or would run
  std::optional<Outcome> outcome;        ///< empty: nothing ran
  changes::BroughtOut brought_out;
  std::vector<Stamp> stamps;
};

/// Callbacks for a front end during the run. Each may be empty.
struct Sinks {
  /// The command has ended; its changes are examined next.
  std::function<void(const Answer&)> ended;
  /// host::Host::on_walk: the search for hidden names goes on.
  std::function<void(const std::string& directory, std::uint64_t entries)> walk;
  /// The sandbox is being built, and that goes on; false: it stands, or will not.
  spawn::WaitFunction set_up;
  Copied copied;        ///< of the copies at the start and of what is brought out
  bool silent = false;  ///< nothing is told of the changes brought out
  Paint paint;          ///< of what is told
  Person person;        ///< is told, and asked before changes are applied
};

/// Reads the policy, looks at the machine, makes the plan, runs it and brings out what is asked.
/// The process is the run's: one at a time, from the main thread, with the descriptors 0 to 2 as
/// the program's streams; several at once: worker/fork_server.hpp. Works as root and as an ordinary
/// user.
[[nodiscard]] Answer launch(const Request& request, const Sinks& sinks = {});

/// What a run or a held sandbox is built from.
struct Prepared {
  host::Host host;
  std::string state_directory;
  policy::Policy policy;
  plan::RunRequest program;  ///< with the variables that were read
  plan::Plan plan;
  std::unique_ptr<cgroup::Group> group;  ///< null: budgets are polled
};
/// The first half of launch(), for what builds its sandbox in another way.
[[nodiscard]] std::expected<Prepared, policy::Findings> prepare(const Request& request,
                                                                const Sinks& sinks);
/// True if what the plan names was replaced since it was made, as /etc/ld.so.cache by the
/// installation of a library: a new plan helps.
[[nodiscard]] bool is_outdated(const Error& error);

/// The same up to the plan; nothing runs: `--dry-run`.
[[nodiscard]] Answer plan_only(const Request& request, const Sinks& sinks = {});

/// The exit status of `sbx run`, sbx-run(1).
[[nodiscard]] int exit_status_of(const Answer& answer);

/// "r_" and 16 hexadecimal digits of getrandom(2).
[[nodiscard]] std::string make_run_id();

}  // namespace sbx::run
