#pragma once

#include <linux/filter.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "base/control.hpp"
#include "base/mount_kind.hpp"
#include "base/socket_request.hpp"
#include "plan/tier/kind.hpp"
#include "spawn/handshake.hpp"
#include "spawn/relative.hpp"

/// Everything the child needs, as plain data made before the clone: after it nothing is allocated.
///
/// What follows from the plan is one block of bytes, the Program: it has no pointer and no
/// descriptor in it, lies in a sealed file in memory, and PID 1 maps a private copy of it. What
/// belongs to one pair of processes is in Channels.
namespace sbx::child {

using Text = Relative<const char>;

/// A name in the layer over a granted directory; see plan::Veil.
enum class VeilKind : std::uint8_t { directory, hidden, content };
struct Veil {
  VeilKind kind;
  Text path;
  Text content;
  std::uint64_t content_size;
};

/// A name of a file with several, plan::LinkedFile. Those of one file stand one behind the other.
struct LinkedName {
  Text directory;  ///< below the source; "." is the source
  Text name;
  std::uint64_t inode;
  bool is_first;
};

/// One step of building the root; plan::Mount explains the members.
struct Step {
  MountKind kind;
  std::uint32_t number;  ///< of the step in the plan, for messages
  bool is_directory;
  bool recursive;
  bool read_only;
  std::uint64_t device;  ///< what `source` must be, when the child opens it
  std::uint64_t inode;
  std::uint32_t device_number;
  std::uint32_t disk_place;
  std::uint64_t attributes;  ///< MOUNT_ATTR_*
  mode_t mode;
  Text source;
  Text target;  ///< relative to the new root, no leading slash
  Text content;
  std::uint64_t content_size;
  Relative<const Veil> veils;
  std::uint64_t veil_count;
  Relative<const LinkedName> linked;
  std::uint64_t linked_count;
};

struct Limit {
  int resource;
  std::uint64_t soft;
  std::uint64_t hard;
};

/// One path-beneath rule of Landlock, with rights already reduced to those of the ABI and the type
/// of the path.
struct LandlockRule {
  Text path;
  std::uint64_t rights;
  bool is_of_disk;  ///< in the private directory, which the parent makes meanwhile
};

/// argv or the environment: execve(2) wants real pointers, which the child writes into `table`.
struct Words {
  Text texts;             ///< one after the other, each with its zero byte
  Relative<char*> table;  ///< count + 1 places
  std::uint64_t count;
};

/// What a parent and its child hold of each other. Descriptors are those of the table that the
/// clone copies.
struct Channels {
  int control;  ///< SOCK_SEQPACKET to the supervisor
  int errors;   ///< error pipe, write end
  int supervisor_pidfd;
  int supervisor_ends[2];  ///< the supervisor's ends of control and error pipe, copied by the clone
  int streams[3];          ///< become fds 0 to 2; -1 with a terminal
  char* argument_area;     ///< argv and environ of sbx, contiguous
  std::size_t argument_area_size;
  const int* group_tasks;  ///< files of control groups to write "0" to
  std::size_t group_task_count;
  const int* trees;  ///< per step a detached mount made by the parent; -1: the child opens `source`
  int scratch_tree;  ///< the private disk as a detached mount made by the parent; -1: none
  int lock;          ///< a lock of the supervisor's, which PID 1 keeps to its own end; -1: none
  int image;         ///< of a call: the program, open; -1: `Program::executable`
  unsigned kept;     ///< of a call: descriptors from 3 on that its program gets
};

/// What PID 1 is for.
enum class Role : std::uint8_t {
  run,     ///< one command
  holder,  ///< a held sandbox: builds it and makes an init for each call
  call,    ///< the init of one call in a held sandbox
};

struct Program {
  Role role;
  TierKind tier;
  // ids and PID 1
  bool change_ids;  ///< the caller has root's privileges: become uid 1000 of the new map
  uid_t uid;
  gid_t gid;
  bool has_keeper;    ///< what does PID 1's part in the machine's own PID namespace
  uid_t keeper;       ///< its uid, if it has one of its own, else 0
  bool has_affinity;  ///< else as the caller's
  cpu_set_t affinity;
  bool own_network;
  bool gateway;     ///< the clone's network namespace becomes the gateway's: create another one
  bool hand_space;  ///< hand over the sandbox's network namespace
  Relative<const SocketRequest> sockets;
  std::uint64_t socket_count;  ///< at most kMostRequests
  bool asks_before_reaping;    ///< Report child_ended and wait for Order reap
  bool list_processes;         ///< hand over a procfs without hidepid
  bool outer_proc;             ///< /proc numbers processes as the caller's PID namespace does
  bool keeps_host_name;        ///< the caller's

  // root
  Text scratch_size;  ///< tmpfs options, decimal
  Text scratch_inodes;
  Text scratch_directory;  ///< a directory of the host instead of a tmpfs; null: a tmpfs
  std::uint64_t scratch_device;
  std::uint64_t scratch_inode;
  bool waits_for_copies;  ///< the parent fills copied directories before the command starts
  Relative<const Step> steps;
  std::uint64_t step_count;

  // payload
  bool interactive;
  winsize window;
  Text working_directory;
  Text call_directory;  ///< of a call: from there on; null: none
  mode_t umask;
  Relative<const Limit> limits;
  std::uint64_t limit_count;
  int landlock_abi;
  bool landlock_files;
  Relative<const LandlockRule> landlock_rules;
  std::uint64_t landlock_rule_count;
  Relative<sock_filter> filter;
  std::uint16_t filter_length;
  bool notifies;
  Text executable;
  Words argv;
  Words envp;

  Text first;        ///< of a call: executed where it can be, before `executable`; null: none
  Words first_argv;  ///< of `first`

  // Written by the child into its own copy.
  Channels channels;
  Fault fault;
  int terminal_master;
  int terminal_slave;
  int scratch;           ///< the private tmpfs
  int processes;         ///< procfs without hidepid
  int landlock_ruleset;  ///< made ahead, less what is_of_disk; -1: the payload makes it
  int mount_space;       ///< of a call: its mount namespace
  int listener;          ///< left by the payload in the shared descriptor table
  bool waits;            ///< Start::waits
  bool confined;         ///< this process can signal no other than those of the sandbox
  pid_t second;          ///< the keeper's; 0: it has none
  const std::uint64_t*
      inits;  ///< of a call: how many inits of calls there are now; null: it is not a call
};

/// What a child is started with. The bytes of `block` begin with the Program.
struct Start {
  int block;
  std::size_t size;
  Channels channels;
  Fault fault;
  const std::uint64_t* inits;  ///< Program::inits
  bool waits = false;          ///< of a call: for Order go, before it joins its groups
};

/// The child after clone3: maps its program and runs it. Never returns.
[[noreturn]] void run_init(const Start& start);
/// The same for the init of a call, which a holder has cloned: `start` has its mounts, and its
/// program comes later.
[[noreturn]] void run_call(const Start& start);

// ---- between the child's own files ----

/// A private copy of the block, with its pointers set.
Program& map_program(const Start& start);
/// An order (base/control.hpp) and the descriptors that came with it.
struct Received {
  int fds[control::kMostCallDescriptors];
  unsigned count;
};
/// Receives one message of up to `size` bytes; its length, 0 at end of file, -1 with errno.
long receive_order(int socket, void* order, std::size_t size, int flags, Received& received);
/// Sends a report with up to kMostReported descriptors.
inline constexpr std::size_t kMostReported = kMostRequests + 4;
long send_report(const Program& program, control::Report report, const int* fds, std::size_t count);
/// Waits for the supervisor's next order; ends PID 1 if it is not `expected`.
void wait_for_order(const Program& program, control::FromSupervisor expected);
/// Makes all permitted capabilities effective, or none.
void raise_own_capabilities(const Program& program);
void lower_own_capabilities(const Program& program);
/// The payload, in the address space and descriptor table of PID 1 until execve: meeting point 4.
/// Never returns.
int run_payload(void* program);
/// The Landlock ruleset of the payload, less what is_of_disk: its descriptor; -1: none is wanted.
int make_second_wall(const Program& program);
/// Sends a signal to every process of the sandbox but this one.
void signal_all(const Program& program, int signal);
/// Drops every capability from the bounding set, for this process and those that it makes. Needs
/// CAP_SETPCAP.
void empty_bounding_set(const Program& program);

}  // namespace sbx::child
