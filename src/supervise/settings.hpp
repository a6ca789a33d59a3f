#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include <sbx/units.hpp>
#include "base/budgets.hpp"
#include "base/event_loop.hpp"
#include "supervise/meters/caller_memory.hpp"
#include "supervise/meters/disk_meter.hpp"
#include "supervise/meters/full_file.hpp"

namespace sbx::supervise {

/// Describes a denied call; from plan::Filter::explain. `errno_value`: errno for the program.
using ExplainCall =
    std::function<Denial(int number, const std::uint64_t (&arguments)[6], int& errno_value)>;

/// An allowed call that is inspected before it continues, or answered.
struct NotedCall {
  int number = 0;
  std::uint64_t arguments[6] = {};
};
/// Called for each such call while its caller waits: must be quick.
struct Note {
  int number = 0;
  /// For reports, never for decisions: the call continues.
  std::function<void(const NotedCall& call, const CallerMemory& memory)> look;
  /// Instead: the errno of the call, 0 where it was done in its place, or nothing where it may
  /// continue, which only its registers may decide.
  std::function<std::optional<int>(const NotedCall& call, const CallerMemory& memory)> answer{};
  /// Instead: answers the call itself, now or later, by CallerMemory::finish() or give().
  std::function<void(const NotedCall& call, const CallerMemory& memory)> take{};
};

/// What to do with output beyond its cap.
enum class OnExceed : std::uint8_t {
  end_run,  ///< over-budget output
  by_sink,  ///< ends the run where truncation would go unnoticed: in a file or a pipe
  drop,     ///< counts and drops it
};

/// Access to the sockets in a sandbox's network namespace.
struct SocketDiagnosis {
  int fd = -1;           ///< NETLINK_SOCK_DIAG, opened there; -1: none
  unsigned sockets = 0;  ///< the supervisor's own sockets in the namespace, including `fd`
  unsigned tcp = 0;      ///< TCP over IPv4 among these
};

/// 0 means unlimited.
struct Settings {
  Budgets budgets;
  std::uint64_t own_tasks =
      1;               ///< in the sandbox's control group: PID 1, or a keeper and its second
  int cpus = 1;        ///< CPUs that can run the tree at once: bounds the rate of CPU time
  Bytes stdout_cap{};  ///< captured
  Bytes stderr_cap{};  ///< captured
  Bytes passed_cap{};  ///< passed through, per stream
  OnExceed on_exceed = OnExceed::by_sink;
  bool capture = false;  ///< keep head and tail for the record; false: pass through to fds 1 and 2
  bool kill_on_denied = false;
  bool interactive = false;
  bool input_is_sent = false;      ///< a call's: InputRelay::Options::is_sent
  bool trial = false;              ///< start measurements at once that a short run would not reach
  bool memory_is_granted = false;  ///< the limit of a group around sbx, lower than the policy's
  /// If memory is polled: a file whose "oom_kill" counts kills in the surrounding group; may be
  /// empty.
  std::string outer_events;
  bool disk_is_host_too = false;       ///< writes to the host count against `disk`
  bool shared_memory_is_lent = false;  ///< the growth of /dev/shm counts against `disk`
  bool disk_in_directory = false;      ///< `Watched::scratch` is a directory on a real file system
  bool disk_begins_with_copy = false;  ///< a directory with unknown files
  /// Files of exactly `file_size` that the run itself put on the disk.
  std::uint64_t full_files_at_start = 0;
  std::uint64_t disk_before = 0;  ///< bytes on the private tmpfs before the command began
  Exhausted
      exhausted_before{};  ///< of a call: what the private disk had no more of before it began
  /// A call's: processes that the kernel had killed in its group, for lack of memory, before it
  /// began: the init that waited for it.
  std::uint64_t memory_kills_before = 0;
  /// A call's: these files had the maximum size before it began, which says nothing about it.
  FullFiles full_files_before;
  ExplainCall explain;
  /// The action for each allowed call that the filter notifies.
  std::vector<Note> notes;
  /// Other users of the loop: `attach` is called before the first wait, `detach` before the loop
  /// ends. `sends` is true while they pass on what a program sent that has ended: the loop goes on
  /// for a moment. Each may be empty.
  std::function<Status(EventLoop&)> attach;
  std::function<bool()> sends;
  std::function<void()> detach;
};

}  // namespace sbx::supervise
