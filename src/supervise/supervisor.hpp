#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/event_loop.hpp"
#include "base/events.hpp"
#include "base/result.hpp"
#include "supervise/meters/entry_meter.hpp"
#include "supervise/meters/growth_meter.hpp"
#include "supervise/settings.hpp"
#include "supervise/signals.hpp"
#include "supervise/streams/streams.hpp"
#include "supervise/tree.hpp"

/// What watches a running sandbox: pidfd, output pipes, timers, signals, notifications, in one
/// epoll loop and one thread. supervise may not include plan or spawn: it is handed values and
/// descriptors.
namespace sbx::supervise {

/// A running sandbox: its processes and descriptors, owned by the caller while supervise() runs.
struct Watched {
  Tree& tree;
  int listener = -1;
  int scratch = -1;
  int terminal = -1;
  GrowthMeter* growth = nullptr;  ///< of live grants in memory, created before the command ran
  EntryMeter* entries = nullptr;  ///< of all live grants, created before the command ran
  SocketDiagnosis sockets;  ///< if memory is polled and the network namespace is the sandbox's own
};

/// Where what the program writes goes, and where its input comes from.
struct Sinks {
  Streams streams;           ///< the supervisor's ends of the sandbox's streams
  int in = STDIN_FILENO;     ///< of the caller
  int out = STDOUT_FILENO;   ///< of the caller
  int err = STDERR_FILENO;   ///< of the caller
  Events* events = nullptr;  ///< hears what happens; null: nobody does
};

/// What ends a run before its time. Descriptors stay the caller's.
struct Cancellation {
  const SignalScope* signals = nullptr;  ///< of the process: one supervisor at most has them
  int cancel = -1;                       ///< readable or hung up: the run is cancelled; -1: none
  int parent = -1;                       ///< a pidfd: cancelled when this process ends; -1: none
  /// Pipes and sockets whose readers wait for the answer: when all have left, the run is cancelled.
  std::vector<int> readers{};
};

/// Supervises one sandbox in a loop that belongs to the caller and may have others in it. Construct
/// it at `ready`, from where wall_time counts; the caller has closed its copies of the child's
/// ends. `settings` and `sandbox` must outlive it.
class Supervisor {
 public:
  Supervisor(EventLoop& loop, const Settings& settings, const Watched& sandbox, Sinks sinks,
             Cancellation cancellation);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  /// Kills what is still alive.
  ~Supervisor();

  /// Begins to watch. Errors: internal (epoll).
  [[nodiscard]] Status start();
  /// Call it after each turn of the loop: tells of limits that were reached meanwhile.
  void after_turn();
  /// Ends the run as over this budget, which somebody else watches (a session).
  void spend(Budget budget);
  /// Ends the run for this reason, unless one is known already.
  void end(const Verdict& reason);
  /// Sends a signal to the main process; it decides nothing.
  void signal_main(int signal);
  /// The same to the main process's group, as a terminal does at Ctrl-C.
  void signal_group(int signal);
  /// As kill_foreground() of supervise/foreground.hpp.
  static void kill_foreground(pid_t init, std::uint64_t since_microseconds);
  /// As after SIGTERM to sbx: the program has 2 s to end.
  void cancel(int signal);
  /// The system calls that were refused since the start or the last time.
  [[nodiscard]] std::vector<Denial> take_denials();
  /// The limits that refused something since the start or the last time, to what has ended with
  /// this status since.
  [[nodiscard]] std::vector<LimitMet> take_limits_met(int status);
  /// CPU time of all its processes so far, in microseconds.
  [[nodiscard]] std::uint64_t cpu_microseconds();
  /// What was used so far no longer counts to the budget of CPU time.
  void renew_cpu_time();
  /// PID 1 is reaped and all output is delivered.
  [[nodiscard]] bool over() const;
  /// Once, when it is over(). Everything that a program or user can cause is in the Outcome, also
  /// that PID 1 died before it reported how the command ended (Lost).
  [[nodiscard]] Outcome finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// One sandbox in a loop of its own, to its end. Errors: internal (epoll). On return PID 1 is
/// reaped, on an error killed first.
[[nodiscard]] Result<Outcome> supervise(const Settings& settings, const Watched& sandbox,
                                        Sinks sinks, Cancellation cancellation);

}  // namespace sbx::supervise
