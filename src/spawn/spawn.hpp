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

/// Builds the sandbox of a Plan and starts its command. Call from the process's main thread: the
/// parent-death signal of the sandbox follows the calling thread, prctl(2).
namespace sbx::spawn {

/// The ends of the standard streams that the child gets.
struct ChildStreams {
  UniqueFd in;
  UniqueFd out;
  UniqueFd err;
};

/// A running sandbox. Killing PID 1 (by `pid1`) ends everything in it.
struct Sandbox {
  pid_t pid = -1;     ///< PID 1, in the caller's PID namespace
  UniqueFd pid1;      ///< its pidfd
  UniqueFd control;   ///< SOCK_SEQPACKET to PID 1, base/control.hpp
  UniqueFd listener;  ///< seccomp notifications; invalid when the filter has none
  UniqueFd scratch;   ///< the private tmpfs: fstatfs tells what limits.disk saw
  /// A procfs of the sandbox without hidepid, where the host's /proc does not list children.
  UniqueFd processes;
  ///< list children
  UniqueFd terminal;  ///< pty master, with -i
  std::vector<Degraded> degraded;
};

/// How PID 1 gets into its control group. Either the clone puts it there (cgroup v2), or it
/// moves itself, first of all (v1).
struct Placement {
  int folder = -1;         ///< for CLONE_INTO_CGROUP
  std::vector<int> joins;  ///< files to write "0" to
};

/// A folder of the host that serves as the private disk instead of a tmpfs: empty, and writable for
/// the sandbox's uid.
struct DiskPlace {
  std::string path;  ///< canonical
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
};

/// Puts the copies into the private disk, whose descriptor it is given, before the command starts.
using FillFunction = std::function<Status(int scratch)>;

struct Disk {
  const DiskPlace* folder = nullptr;  ///< null: a tmpfs
  FillFunction fill{};                ///< empty: nothing is copied
};

/// Told the name of each stage of a start when it is over, for --trace-time.
using StampFunction = std::function<void(const char* stage)>;

/// Errors: setup (each names the stage and, where there is one, the policy line), host (no user
/// namespaces: with the cure), not_found and not_executable (execve refused). On error nothing is
/// left behind.
[[nodiscard]] Result<Sandbox> spawn(const plan::Plan& plan, const host::Host& host,
                                    const Identity& identity, const NetworkRequest& network,
                                    const Disk& disk, ChildStreams streams, ArgumentArea arguments,
                                    const Placement& placement, const StampFunction& stamp);

}  // namespace sbx::spawn
