#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/argument_area.hpp"
#include "base/events.hpp"
#include "base/result.hpp"
#include "base/tell.hpp"
#include "changes/bring_out.hpp"
#include "plan/plan.hpp"
#include "plan/request.hpp"
#include "policy/load.hpp"
#include "policy/policy.hpp"
#include "run/variables.hpp"

/// The way to a sandbox for everything that starts one: `sbx run`, `sbx doctor`, workers. Read this first.
namespace sbx::run {

/// What is asked of one sandbox.
struct Request {
  std::vector<policy::PolicyOperand> policies;  ///< none: the user's default policy
  std::vector<policy::Override> overrides;      ///< weakest first
  std::optional<policy::Policy> policy;         ///< already read: it stands for the two above
  plan::RunRequest program;
  std::vector<VariableSource> variables;  ///< read and added to those of `program`
  changes::BringOutOptions bring_out;
  bool capture = false;        ///< keep the program's output for the answer
  bool lists_changes = false;  ///< the changes are wanted in the answer, whatever `bring_out` says
  /// A run for the sake of `degraded`: what a short run does not come to is begun at once.
  bool trial = false;
  std::string id;  ///< of the run, and of its place in `sbx ps`; empty: it is not listed
  /// when the other ends of all these pipes are closed, the run is cancelled
  std::vector<int> readers;
  int parent = -1;           ///< a pidfd: when that process ends, the run is cancelled
  int cancel = -1;           ///< a descriptor: when it is readable or hung up, the run is cancelled
  Events* events = nullptr;  ///< hears what happens on the way; null: nobody does
  ArgumentArea arguments{};  ///< of this process: the sandbox's PID 1 wipes its copy
  /// CLOCK_MONOTONIC at which the stages of --trace-time begin
  std::uint64_t started_microseconds = 0;
};

/// What became of it. What was not reached is empty.
struct Answer {
  /// Why nothing ran, or what failed after the command had ended (then `outcome` is there too). A policy may have
  /// several mistakes; anything else is one.
  policy::Findings errors;
  /// `record = "keep"` in the user's config.toml; nothing: not read
  std::optional<bool> keeps_record;
  std::string state_folder;              ///< of the user; empty: none
  std::optional<policy::Policy> policy;  ///< merged
  std::optional<plan::Plan> plan;        ///< the plan that ran, or would run
  std::optional<Outcome> outcome;        ///< nothing: nothing ran
  changes::BroughtOut brought_out;
  std::vector<Stamp> stamps;
};

/// What a front end wants to hear on the way. Each may be empty.
struct Sinks {
  /// The command has ended; what it changed is looked at next.
  std::function<void(const Answer&)> ended;
  /// Looking through this directory for hidden names takes long.
  std::function<void(const std::string& directory)> long_walk;
  bool silent = false;  ///< nothing is said on stderr of what is brought out
  Paint paint;          ///< of what is said
};

/// Reads the policy, looks at the machine, makes the plan, runs it and brings out what is asked. The process is the
/// run's: one at a time, from the main thread, with the descriptors 0 to 2 as the program's streams; several at once:
/// worker.hpp. Works as root and as an ordinary user.
[[nodiscard]] Answer launch(const Request& request, const Sinks& sinks = {});

/// The same up to the plan, and nothing runs: `--dry-run`.
[[nodiscard]] Answer plan_only(const Request& request, const Sinks& sinks = {});

/// The exit status of `sbx run`, sbx-run(1).
[[nodiscard]] int exit_status_of(const Answer& answer);

/// "r_" and 16 hexadecimal digits of getrandom(2).
[[nodiscard]] std::string make_run_id();

}  // namespace sbx::run
