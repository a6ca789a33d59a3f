#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/argument_area.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "host/host.hpp"
#include "plan/plan.hpp"
#include "spawn/identity.hpp"
#include "spawn/network.hpp"

/// Builds the sandbox of a Plan and starts its command. Call it from the process's main thread: the sandbox's
/// parent-death signal follows the calling thread, prctl(2).
namespace sbx::spawn {

/// The child's ends of the standard streams.
struct ChildStreams {
  UniqueFd in;
  UniqueFd out;
  UniqueFd err;
};

/// A running sandbox. Killing PID 1 (through `pid1`) ends all its processes.
struct Sandbox {
  pid_t pid = -1;     ///< PID 1, in the caller's PID namespace
  UniqueFd pid1;      ///< its pidfd
  UniqueFd control;   ///< SOCK_SEQPACKET to PID 1, base/control.hpp
  UniqueFd listener;  ///< seccomp notifications; invalid if the filter sends none
  UniqueFd scratch;   ///< the private tmpfs; its fstatfs shows the use of limits.disk
  /// A procfs of the sandbox without hidepid, if the host's /proc doesn't list children.
  UniqueFd processes;
  UniqueFd terminal;  ///< pty master, with -i
  std::vector<Degraded> degraded;
};

/// How PID 1 enters its control group: the clone puts it there (cgroup v2), or it moves itself as its first action
/// (v1).
struct Placement {
  int folder = -1;         ///< for CLONE_INTO_CGROUP
  std::vector<int> joins;  ///< files to write "0" to
};

/// A directory of the host that serves as the private disk instead of a tmpfs: empty, and writable for the sandbox's
/// uid.
struct DiskPlace {
  std::string path;  ///< canonical
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
};

/// Fills the copies before the command starts. Gets the private disk's descriptor.
using FillFunction = std::function<Status(int scratch)>;

struct Disk {
  const DiskPlace* folder = nullptr;  ///< null: a tmpfs
  FillFunction fill{};                ///< empty: nothing is copied
};

/// Called with the name of each start-up stage when it is over, for --trace-time.
using StampFunction = std::function<void(const char* stage)>;

/// Errors: setup (with the stage and, if there is one, the policy line), host (no user namespaces: with the fix),
/// not_found and not_executable (execve failed). After an error nothing is left behind.
[[nodiscard]] Result<Sandbox> spawn(const plan::Plan& plan, const host::Host& host,
                                    const Identity& identity, const NetworkRequest& network,
                                    const Disk& disk, ChildStreams streams, ArgumentArea arguments,
                                    const Placement& placement, const StampFunction& stamp);

}  // namespace sbx::spawn
