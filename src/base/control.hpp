#pragma once

#include <sys/resource.h>

#include <cstdint>

/// Messages between the supervisor and PID 1 over one SOCK_SEQPACKET pair, each a whole struct. PID 1 is the only peer:
/// the payload never holds this socket. The death of the other side is an ordinary answer: end of file.
namespace sbx::control {

/// The fourth register of the payload's own execve, which the kernel does not look at, execve(2). A filter that notifies
/// execve lets this one pass: PID 1 sleeps until it is done (vfork), so no process could answer its notification.
inline constexpr std::uint64_t kOwnExec = 0x7362'7865'7865'6331;

enum class FromSupervisor : std::uint32_t {
  go = 1,         ///< ids are mapped, grants are ready
  signal_main,    ///< send `value` to the main process
  stop_all,       ///< SIGSTOP to everything but PID 1, then answer `stopped`
  continue_all,   ///< SIGCONT to everything
  network_ready,  ///< the gateway answers: the command may start
  filled,         ///< copied directories hold their files
  reap,           ///< what ended has been counted: wait for it
};
struct Order {
  FromSupervisor what;
  std::int32_t value;
};

enum class FromPid1 : std::uint32_t {
  descriptors =
      /// SCM_RIGHTS: scratch, processes, terminal (in this order; `value` is a bit set of those
  /// present, 1 2 4)
  1,
  listener,  ///< SCM_RIGHTS: the seccomp listener
  stopped,
  /// SCM_RIGHTS: with a gateway its netlink socket, its namespace and the sandbox's netlink socket;
  /// the sandbox's namespace where `value` is 1; the sockets that were wished for, in their order
  network,
  /// not the main process; it is waited for at Order reap (only where no group counts processes)
  child_ended,
  main_ended,  ///< `value` is the wait status
  /// `value` other processes were there at that moment, including zombies;
  /// the last message. With `own_peak`
  left_behind,
};
struct Report {
  FromPid1 what;
  std::int32_t value;
  std::int32_t own_peak = 0;  ///< KiB: the largest resident set of PID 1 itself
};

}  // namespace sbx::control
