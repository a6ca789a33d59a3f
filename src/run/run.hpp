#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/copied.hpp"
#include "base/events.hpp"
#include "base/result.hpp"
#include "cgroup/group.hpp"
#include "host/host.hpp"
#include "plan/plan.hpp"
#include "spawn/spawn.hpp"
#include "workspace/copy.hpp"

/// plan -> acquire -> spawn -> supervise -> outcome.
namespace sbx::run {

struct Options {
  /// Keep the command's output for the record instead of passing it through (--json).
  bool capture = false;
  ArgumentArea arguments{};  ///< argv and environ of this process; wiped in the sandbox's PID 1
  /// Receives the private workspace for the steps after the run; null: it is discarded.
  workspace::Copy* copy = nullptr;
  std::string state_directory;  ///< ~/.local/state/sbx; empty: the caller has no home
  /// The run's control group, from cgroup::Acquisition; null: budgets are polled.
  cgroup::Group* group = nullptr;
  std::string id;                          ///< lists the run while it is under way (under_way.hpp)
  std::string policy;                      ///< its name, for that list
  std::vector<int> readers;                ///< supervise::Settings::readers
  int parent = -1;                         ///< supervise::Settings::parent
  int cancel = -1;                         ///< supervise::Settings::cancel
  Events* events = nullptr;                ///< receives events; may be null
  spawn::WaitFunction set_up;              ///< Sinks::set_up
  Copied copied;                           ///< hears of the copies at the start
  std::uint64_t started_microseconds = 0;  ///< CLOCK_MONOTONIC time at which stamps begin
  bool tells_lost_files = false;           ///< where the private workspace goes with the run
  /// A run to find out what is `degraded`: measurements that a short run would not reach start at
  /// once.
  bool trial = false;
};

/// Runs a plan to its end. If this machine can't do a part of it and a weaker way exists, a weaker
/// plan replaces `plan`, which is then the one that ran. A sandbox that could not be built is an
/// Error; whatever the program did is an Outcome. Call from the main thread of a single-threaded
/// process. Works as root and as an ordinary user.
[[nodiscard]] Result<Outcome> run(plan::Plan& plan, const host::Host& host, const Options& options);
[[nodiscard]] Outcome cancelled_before_start(int signal);

}  // namespace sbx::run
