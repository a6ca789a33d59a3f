#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/argument_area.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "host/host.hpp"
#include "plan/plan.hpp"
#include "spawn/holder.hpp"
#include "spawn/identity.hpp"
#include "spawn/network.hpp"
#include "spawn/pack.hpp"
#include "spawn/placement.hpp"

/// Builds the sandbox of a Plan and starts its command. Call it from the process's main thread: the
/// sandbox's parent-death signal follows the calling thread, prctl(2).
namespace sbx::spawn {

/// The child's ends of the standard streams.
struct ChildStreams {
  UniqueFd in;
  UniqueFd out;
  UniqueFd err;
};

/// A running sandbox, or one call in a held sandbox. Killing PID 1 (through `pid1`) ends all its
/// processes.
struct Sandbox {
  pid_t pid = -1;               ///< PID 1, in the caller's PID namespace
  UniqueFd pid1;                ///< its pidfd
  UniqueFd control;             ///< SOCK_SEQPACKET to PID 1, base/control.hpp
  UniqueFd listener;            ///< seccomp notifications; invalid if the filter sends none
  UniqueFd scratch;             ///< the private tmpfs; its fstatfs shows the use of limits.disk
  std::uint64_t disk_used = 0;  ///< bytes on it before the command starts
  /// A procfs of the sandbox without hidepid, if the host's /proc doesn't list children.
  UniqueFd processes;
  UniqueFd terminal;     ///< pty master, with -i
  UniqueFd mount_space;  ///< of a call: its mount namespace; to close it as the last one takes the
                         ///< kernel 0.3 ms
  std::vector<Degraded> degraded;
};

/// Puts the copies into the private disk, whose descriptor it is given, before the command starts.
/// Without mounts (-1) it makes the disk too.
using FillFunction = std::function<Status(int scratch)>;

struct Disk {
  const DiskPlace* directory = nullptr;  ///< null: a tmpfs
  FillFunction fill{};                   ///< empty: nothing is copied
  /// Makes what needs nothing of PID 1, while that gets ready; the command starts after it. May be
  /// empty.
  std::function<Status()> make{};
  std::function<void(pid_t pid)> cloned{};  ///< told of PID 1 before it does anything; may be empty
};

/// Called with the name of each start-up stage when it is over, for --trace-time.
using StampFunction = std::function<void(const char* stage)>;
using WaitFunction = std::function<void(bool goes_on)>;

/// What a start needs. The plan, the network request and the disk must outlive the Spawning.
///
/// With `role` holder the sandbox is held: no command starts, and `Sandbox::control` takes calls.
/// With `role` call the plan is that of a call, `holder` is that socket, and of the rest only
/// streams and placement are used.
struct SpawnRequest {
  const plan::Plan& plan;
  const host::Host& host;
  const MappedIdentity& identity;
  const NetworkRequest& network;
  const Disk& disk;
  ChildStreams streams;
  ArgumentArea arguments{};
  Placement placement{};
  StampFunction stamp;
  /// spawn() waits for the child, which may copy files: called again and again, and with false when
  /// that is over. May be empty.
  WaitFunction waits{};
  std::function<void()>
      meanwhile{};  ///< work for spawn() to do while the child sets up; may be empty
  child::Role role = child::Role::run;
  int holder = -1;  ///< of a call: the held sandbox's control socket
  /// A call has this in place of holder and placement. It is taken. Null: one is made.
  WaitingInit* init = nullptr;
  int image = -1;  ///< of a call: executed instead of the plan's executable, execveat(2); -1: none
  /// The program of a call gets these descriptors from 3 on, besides its streams; at most
  /// control::kMostKept.
  std::vector<int> kept{};
  /// PID 1 keeps a copy of it for as long as it lives: the lock of an open file that outlives this
  /// process with it, flock(2). -1: none.
  int lock = -1;
};

/// A sandbox that is being built: start() makes PID 1 and sends it on its way, advance() answers it
/// until the command has begun. A caller with an event loop waits for fd() there, and then neither
/// of them waits; for a call without `init` whose placement moves it, start() waits for the
/// holder's clone. Letting go of it kills what was built.
class Spawning {
 public:
  /// Errors: setup (each names the stage and, where there is one, the policy line), host (no user
  /// namespaces: with the cure). On error nothing is left behind.
  [[nodiscard]] static Result<Spawning> start(SpawnRequest request);
  Spawning(Spawning&&) noexcept;
  Spawning& operator=(Spawning&&) = delete;
  ~Spawning();

  /// What comes next arrives here: poll(2) with POLLIN. It changes with each advance().
  [[nodiscard]] int fd() const;
  /// Takes one message from fd(), for which it waits; the sandbox with the last one. Errors: as
  /// start(), and not_found and not_executable (execve refused); nothing is left behind then, and
  /// the Spawning has come to its end.
  [[nodiscard]] Result<std::optional<Sandbox>> advance();

 private:
  class Build;
  explicit Spawning(std::unique_ptr<Build> build);
  std::unique_ptr<Build> build_;
};

/// Both halves, and the waiting between them.
[[nodiscard]] Result<Sandbox> spawn(SpawnRequest request);

}  // namespace sbx::spawn
