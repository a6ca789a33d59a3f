#pragma once

#include <sys/resource.h>

#include <cstdint>

/// Messages between the supervisor and PID 1 over one SOCK_SEQPACKET pair, each a whole struct. PID
/// 1 is the only peer: the payload never holds this socket. The death of the other side is an
/// ordinary answer: end of file.
///
/// A held sandbox (a session) has one more pair for each call: its PID 1, the holder, clones an
/// init for the call, and both report to the call's supervisor on that pair.
namespace sbx::control {

/// The name of PID 1, and of the keeper and its second where there are no namespaces.
inline constexpr char kInitName[] = "sbx-init";

/// The fourth register of the payload's own execve, which the kernel does not look at, execve(2). A
/// filter that notifies execve lets this one pass: PID 1 sleeps until it is done (vfork), so no
/// process could answer its notification.
inline constexpr std::uint64_t kOwnExec = 0x7362'7865'7865'6331;

enum class FromSupervisor : std::uint32_t {
  go = 1,         ///< ids are mapped, grants are ready
  signal_main,    ///< send `value` to the main process
  signal_group,   ///< send `value` to the main process's group, as a terminal does at Ctrl-C
  stop_all,       ///< SIGSTOP to everything but PID 1, then answer `stopped`
  continue_all,   ///< SIGCONT to everything
  network_ready,  ///< the gateway answers: the command may start
  filled,         ///< copied directories hold their files
  reap,           ///< what ended has been counted: wait for it
  /// To a holder, with CallOrder; SCM_RIGHTS: a program's block, of which the mounts count, the
  /// call's control socket and error pipe (PID 1's ends), and files of control groups to write "0"
  /// to. The new init makes its mounts and waits for begin_call.
  start_call,
  /// To the init of a call, with CallProgram; SCM_RIGHTS: the block of its program, the program's
  /// three streams where `streams` is set, the program itself where `image` is set, and `kept`
  /// descriptors that it gets from 3 on
  begin_call,
};
struct Order {
  FromSupervisor what;
  std::int32_t value;
};
/// How a holder is asked for a call: FromSupervisor::start_call.
struct CallOrder {
  FromSupervisor what;
  std::uint32_t block_size;
  /// The init waits for `go`: its supervisor moves it into its control group (cgroup v2).
  bool waits;
};
static_assert(sizeof(CallOrder) != sizeof(Order));
/// What the init of a call runs: FromSupervisor::begin_call.
struct CallProgram {
  FromSupervisor what;
  std::uint32_t block_size;
  bool streams;
  bool image;         ///< a program in a file that the sandbox does not show: sbx's own
  std::uint8_t kept;  ///< at most kMostKept
};
inline constexpr unsigned kMostGroupFiles = 4;
/// An interpreter's channels and the text of its driver.
inline constexpr unsigned kMostKept = 3;
/// Of either order.
inline constexpr unsigned kMostCallDescriptors = 1 + 3 + 1 + kMostKept;
static_assert(3 + kMostGroupFiles <= kMostCallDescriptors);

enum class FromPid1 : std::uint32_t {
  /// SCM_RIGHTS: scratch, processes, terminal, the mount namespace of a call (in this order;
  /// `value` is a bit set of
  /// those present, 1 2 4 8)
  descriptors = 1,
  listener,  ///< SCM_RIGHTS: the seccomp listener
  stopped,
  /// SCM_RIGHTS: with a gateway its netlink socket, its namespace and the sandbox's netlink socket;
  /// the sandbox's namespace where `value` is 1; the sockets that were requested, in their order
  network,
  /// not the main process; it is waited for at Order reap (only where no group counts processes)
  child_ended,
  main_ended,  ///< `value` is the wait status
  /// `value` other processes were there at that moment, including zombies; `running` of them had
  /// not ended, and one of
  /// these is `comm`. The last message. With `own_peak`
  left_behind,
  /// main_ended and left_behind in one: no other process is left. With `own_peak`
  main_ended_alone,
  call_began,    ///< of a call's init, its first message: SCM_RIGHTS: its pidfd
  call_refused,  ///< of the holder: `value` is the errno of clone3
  /// of the holder, the last message of a call: its init is reaped. With `used` (call_ended)
  call_ended,
};
/// What the processes of a call used, as wait4(2) tells the holder.
struct Used {
  std::uint64_t user_microseconds = 0;
  std::uint64_t system_microseconds = 0;
  std::uint64_t blocks_written = 0;  ///< of 512 bytes
  std::int64_t largest_kib = 0;      ///< the largest resident set of one process
};
struct Report {
  FromPid1 what;
  std::int32_t value;
  std::int32_t own_peak = 0;  ///< KiB: the largest resident set of PID 1 itself
  Used used{};
  std::int32_t running = 0;
  std::uint64_t disk_used = 0;  ///< descriptors: bytes on the private tmpfs
  char comm[16] = "";           ///< as /proc/PID/comm, without the newline; empty if unknown
};

}  // namespace sbx::control
