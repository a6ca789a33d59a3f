#pragma once

#include <sys/types.h>

#include <sbx/outcome.hpp>

#include "base/result.hpp"
#include "base/tree_counters.hpp"
#include "supervise/meters/entry_meter.hpp"
#include "supervise/meters/growth_meter.hpp"
#include "supervise/settings.hpp"
#include "supervise/signals.hpp"
#include "supervise/streams/streams.hpp"

/// The only code that waits. Single-threaded, one epoll loop: pidfd, output pipes, timers, signals,
/// notifications. supervise may not include plan or spawn: it is handed values and descriptors.
namespace sbx::supervise {

/// Descriptors of a running sandbox, owned by the caller for as long as supervise() runs.
struct Watched {
  pid_t pid = -1;
  int pid1 = -1;
  int control = -1;
  int listener = -1;
  int scratch = -1;
  int processes = -1;
  int terminal = -1;
  TreeCounters* group = nullptr;  ///< the sandbox's control group, where it has one
  GrowthMeter* growth = nullptr;  ///< of live grants in memory, from before the command ran
  EntryMeter* entries = nullptr;  ///< of all live grants, from before the command ran
  SocketDiagnosis sockets;        ///< where memory is polled and the network namespace is its own
};

/// Waits for the end; called at `ready`, from where wall_time counts. The caller has closed its
/// copies of the child's ends. Errors: internal (epoll); everything a program or user can cause is
/// in the Outcome, also that PID 1 died before it reported how the command ended (Lost).
/// On return PID 1 is reaped, on an error killed first.
[[nodiscard]] Result<Outcome> supervise(const Settings& settings, const Watched& sandbox,
                                        Streams streams, const SignalScope& signals);

}  // namespace sbx::supervise
