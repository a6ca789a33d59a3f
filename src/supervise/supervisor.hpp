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

/// The only code that waits. Single-threaded, one epoll loop: pidfd, output pipes, timers, signals, notifications.
/// supervise must not include plan or spawn: it gets values and descriptors.
namespace sbx::supervise {

/// Descriptors of a running sandbox, owned by the caller while supervise() runs.
struct Watched {
  pid_t pid = -1;
  int pid1 = -1;
  int control = -1;
  int listener = -1;
  int scratch = -1;
  int processes = -1;
  int terminal = -1;
  TreeCounters* group = nullptr;  ///< the sandbox's control group, if it has one
  GrowthMeter* growth = nullptr;  ///< of live grants in memory, created before the command ran
  EntryMeter* entries = nullptr;  ///< of all live grants, created before the command ran
  SocketDiagnosis sockets;  ///< if memory is polled and the network namespace is the sandbox's own
};

/// Waits for the end. Call it at `ready`; wall_time counts from there. The caller has closed its copies of the
/// child's ends. Errors: internal (epoll). Everything that a program or user can cause is in the Outcome, including
/// that PID 1 died before it reported how the command ended (Lost). On return PID 1 is reaped; after an error it is
/// killed first.
[[nodiscard]] Result<Outcome> supervise(const Settings& settings, const Watched& sandbox,
                                        Streams streams, const SignalScope& signals);

}  // namespace sbx::supervise
