#pragma once

#include <cstdint>

/// How parent and child synchronise while a sandbox is built. Both halves cite these numbers.
///
///   1 parent  clone3 with all namespaces, into the control group (v2), keep the pidfd
///   2 parent  write id maps, send Order go; PID 1 meanwhile joins its control groups (v1)
///   2a PID 1  Report network, where there are sockets to hand over; with a gateway the parent
///             joins the namespaces, listens, and sends Order network_ready
///   3 PID 1   own lock-down, mounts, new root, then Report descriptors; wait for network_ready
///             and for filled (where directories are copied, or nothing is mounted: the parent
///             makes the private disk and fills the copies). Where nothing is mounted PID 1
///             reports before 2, and has the rules of the machine's files ready before it waits
///   4 payload limits, privileges, Landlock, filter, then Progress ready on the error pipe, execve
///   5 PID 1   Report listener, then serve: reap, forward, Report main_ended, then left_behind
///   last;
///             where nobody else counts processes: Report child_ended and reap at Order reap
///
/// A session's sandbox is held: its PID 1 (the holder) makes no payload but sends Progress ready
/// after 3. A call begins there with Order start_call on the holder's socket instead of 1 and 2;
/// the holder clones an init for it, and sends Report call_ended on the call's own socket when it
/// has reaped it. The call's init sends Report call_began with its pidfd, mounts its own /proc and
/// /dev/pts for 3, then goes on with 4 and 5.
///
/// The error pipe is close-on-exec. "ready" followed by end of file means started; end of file
/// without "ready" means that the child died during set-up; any other record names the stage that
/// failed. base/control.hpp has the orders and reports.
namespace sbx::child {

/// Every stage, in order: name, kind, what is true afterwards. If a `protection` is skipped, an
/// escape test must fail (tests/escape/test_mutation.py).
#define SBX_STAGES(X)                                                                            \
  X(clone, construction, "PID 1 exists in namespaces of its own")                                \
  X(held, construction, "a call's init exists in the held sandbox")                              \
  X(program, construction, "PID 1 has the program of the sandbox")                               \
  X(group, protection, "the sandbox is in a control group of its own, where there is one")       \
  X(id_maps, construction, "ids inside have ids outside")                                        \
  X(grants, construction, "what is granted is open, and idmapped where it must be")              \
  X(affinity, protection, "the tree runs on as many CPUs as limits.cpus says")                   \
  X(identity, protection,                                                                        \
    "PID 1 has the sandbox's own uid and no groups (callers with root's rights)")                \
  X(wipe, protection, "the caller's arguments and environment are gone from PID 1")              \
  X(non_dumpable, protection, "nothing of PID 1 can be read or traced from inside")              \
  X(parent_death, protection, "PID 1 dies with its supervisor")                                  \
  X(hostname, protection, "the host name is 'sandbox'")                                          \
  X(gateway, construction, "the gateway has a namespace and sockets in it (allow-list)")         \
  X(own_network, protection, "the program is not in the gateway's namespace (allow-list)")       \
  X(links, construction, "the sandbox's network leads to the gateway, and nowhere else")         \
  X(loopback, construction, "127.0.0.1 works")                                                   \
  X(sockets, construction, "the supervisor holds sockets of the sandbox's own network")          \
  X(private_mounts, construction, "mounts made outside do not come in")                          \
  X(root, construction, "an empty root exists")                                                  \
  X(scratch, construction, "the one private tmpfs exists, as large as limits.disk says")         \
  X(make_entry, construction, "a directory, link or file of the new root exists")                \
  X(bind, construction, "a granted path is in the new root")                                     \
  X(bind_attributes, protection, "what is bound is nosuid, nodev and read-only unless granted")  \
  X(veil, protection, "denied names in granted directories are hidden")                          \
  X(overlay, construction, "a granted directory is in the new root, copy-on-write or read-only") \
  X(device, construction, "a harmless device is in the new root")                                \
  X(proc, construction, "/proc shows the sandbox only")                                          \
  X(processes, construction,                                                                     \
    "the supervisor has a procfs of the sandbox's own, where the host's hides processes")        \
  X(nested_namespaces, protection, "no user namespace can be made inside")                       \
  X(devpts, construction, "pseudo-terminals are the sandbox's own")                              \
  X(mask, protection, "dangerous files of /proc are hidden")                                     \
  X(proc_read_only, protection, "kernel settings in /proc are read-only")                        \
  X(scratch_hidden, construction, "the private tmpfs is reached by its granted parts only")      \
  X(root_read_only, protection, "the new root can't be written")                                 \
  X(pivot, construction, "the new root is the root")                                             \
  X(old_root, protection, "the host's files are gone")                                           \
  X(terminal, construction, "a pseudo-terminal is ready for the command (-i)")                   \
  X(descriptors, construction, "the supervisor holds what it watches")                           \
  X(payload, construction, "the process of the command exists")                                  \
  X(session, protection, "the command has a session of its own")                                 \
  X(stdio, construction, "fds 0 to 2 are the sandbox's pipes or its terminal")                   \
  X(close_fds, protection, "no other descriptor survives execve")                                \
  X(working_directory, construction, "the working directory is as planned")                      \
  X(bounding_set, protection, "no capability can come back")                                     \
  X(securebits, protection, "uid 0 means nothing inside")                                        \
  X(capabilities, protection, "the command has no capability")                                   \
  X(no_new_privs, protection, "execve grants nothing")                                           \
  X(call_directory, construction, "a call's command begins where --cwd says")                    \
  X(limits, protection, "the limits of each process hold")                                       \
  X(landlock, protection, "the second wall stands: files, signals, abstract sockets")            \
  X(seccomp, protection, "only the allowed system calls pass")                                   \
  X(init_capabilities, protection, "PID 1 holds no effective capability")                        \
  X(exec, construction, "the command runs")

enum class Stage : std::uint16_t {
#define SBX_STAGE_ENUMERATOR(name, kind, meaning) name,
  SBX_STAGES(SBX_STAGE_ENUMERATOR)
#undef SBX_STAGE_ENUMERATOR
      ready,  ///< not a stage: set-up is complete, execve follows
};

/// One record on the error pipe: eight bytes, written in one call.
struct Progress {
  Stage stage;
  std::uint16_t index;  ///< of the mount step or limit
  std::int32_t error;   ///< errno; 0 with `ready`
};
static_assert(sizeof(Progress) == 8);

/// A test's instruction for one stage; empty in release builds.
struct Fault {
  bool set = false;
  bool leave_out = false;  ///< skip the stage; otherwise fail with `error`
  Stage stage = Stage::ready;
  std::int32_t error = 0;
};

}  // namespace sbx::child
