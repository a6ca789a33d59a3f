#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include <sbx/units.hpp>
#include "base/events.hpp"

#include "base/event_loop.hpp"
#include "supervise/meters/caller_memory.hpp"

namespace sbx::supervise {

/// What a denied call is called; given by plan::Filter::explain. `errno_value`: what the program is
/// told.
using ExplainCall =
    std::function<Denial(int number, const std::uint64_t (&arguments)[6], int& errno_value)>;

/// A call that is allowed and looked at before it goes on: for naming, never for a decision.
struct NotedCall {
  int number = 0;
  std::uint64_t arguments[6] = {};
};
/// Called for each such call while its caller waits: be quick.
struct Note {
  int number = 0;
  std::function<void(const NotedCall& call, const CallerMemory& memory)> look;
};

/// What happens to output over its cap.
enum class OnExceed : std::uint8_t {
  end_run,  ///< over-budget output
  by_sink,  ///< ends the run where nobody would see that a part is missing: in a file or a pipe
  drop,     ///< counted and dropped
};

/// Tells of the sockets in a sandbox's network namespace.
struct SocketDiagnosis {
  int fd = -1;           ///< of NETLINK_SOCK_DIAG, made there; -1: none
  unsigned sockets = 0;  ///< how many of the namespace are the supervisor's, `fd` too
  unsigned tcp = 0;      ///< of these, TCP over IPv4
};

/// 0 means unlimited.
struct Settings {
  Milliseconds wall_time{};
  Milliseconds cpu_time{};
  Milliseconds grace{};
  int cpus = 1;        ///< CPUs that can run the tree at once: bounds how fast cpu_time can pass
  Bytes stdout_cap{};  ///< captured
  Bytes stderr_cap{};  ///< captured
  Bytes passed_cap{};  ///< passed through, of each stream
  OnExceed on_exceed = OnExceed::by_sink;
  bool capture = false;  ///< keep head and tail for the record; false: pass through to fds 1 and 2
  bool kill_on_denied = false;
  bool interactive = false;
  bool trial = false;              ///< begin at once what a short run does not come to
  Bytes memory{};                  ///< of the whole tree
  bool memory_is_granted = false;  ///< the limit of a group around sbx, less than the policy's
  /// Where memory is polled: a file whose "oom_kill" counts kills in the group around; may be empty.
  std::string outer_events;
  std::uint64_t processes = 0;
  Bytes disk{};
  bool disk_is_host_too = false;       ///< what is written to the host counts against `disk`
  bool disk_in_folder = false;         ///< `Watched::scratch` is a folder of a real file system
  bool disk_begins_with_copy = false;  ///< a folder of unknown files
  /// Files of exactly `file_size` that the run itself has put on the disk.
  std::uint64_t full_files_at_start = 0;
  std::uint64_t disk_files = 0;
  std::optional<Bytes> file_size;  ///< nothing: no limit; 0 lets no file grow
  /// Pipes and sockets whose readers wait for the answer: when all have left, the run is cancelled.
  std::vector<int> readers;
  int parent = -1;           ///< a pidfd: the run is cancelled when this process ends; -1: none
  int cancel = -1;           ///< the run is cancelled when this is readable or hung up; -1: none
  Events* events = nullptr;  ///< hears what happens; null: nobody does
  ExplainCall explain;
  /// What to do about each call that the filter notifies although it allows it.
  std::vector<Note> notes;
  /// What else lives in the loop: `attach` before anything is waited for, `detach` before the loop
  /// ends. Both may be empty.
  std::function<Status(EventLoop&)> attach;
  std::function<void()> detach;
};

}  // namespace sbx::supervise
