#pragma once

#include <linux/filter.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "base/control.hpp"
#include "base/mount_kind.hpp"
#include "base/socket_wish.hpp"
#include "spawn/handshake.hpp"

/// Everything the child needs, as plain data prepared before the clone: afterwards it can't allocate.
namespace sbx::child {

/// A name in the layer over a granted directory; see plan::Veil.
enum class VeilKind : std::uint8_t { folder, hidden, content };
struct Veil {
  VeilKind kind;
  const char* path;
  const char* content;
  std::size_t content_size;
};

/// One step of building the root; plan::Mount explains the members.
struct Step {
  MountKind kind;
  bool is_folder;
  bool recursive;
  bool read_only;
  int tree;              ///< detached mount from the parent; -1: the child opens `source` itself
  std::uint64_t device;  ///< expected identity of `source`, if the child opens it
  std::uint64_t inode;
  std::uint32_t device_number;
  std::uint64_t attributes;  ///< MOUNT_ATTR_*
  mode_t mode;
  const char* source;
  const char* target;  ///< relative to the new root, no leading slash
  const char* content;
  std::size_t content_size;
  const Veil* veils;
  std::size_t veil_count;
};

struct Limit {
  int resource;
  std::uint64_t soft;
  std::uint64_t hard;
};

/// One path-beneath rule of Landlock, with rights already reduced to those of the ABI and the type of the path.
struct LandlockRule {
  const char* path;
  std::uint64_t rights;
};

struct Program {
  // channels
  int control;  ///< SOCK_SEQPACKET to the supervisor
  int errors;   ///< error pipe, write end
  int supervisor_pidfd;
  int supervisor_ends[2];  ///< the supervisor's ends of control and error pipe, copied by the clone
  int streams[3];          ///< become descriptors 0 to 2; -1 with a terminal

  // ids and PID 1
  bool change_ids;  ///< the caller has root's privileges: become uid 1000 of the new map
  uid_t uid;
  gid_t gid;
  char* argument_area;  ///< argv and environ of sbx, contiguous
  std::size_t argument_area_size;
  const cpu_set_t* affinity;  ///< null: the caller's
  bool own_network;
  bool gateway;     ///< the clone's network namespace becomes the gateway's: create another one
  bool hand_space;  ///< hand over the sandbox's network namespace
  const SocketWish* sockets;
  std::size_t socket_count;  ///< at most kMostWishes
  const int* group_tasks;    ///< files of control groups to write "0" to
  std::size_t group_task_count;
  bool asks_before_reaping;  ///< Report child_ended and wait for Order reap
  bool list_processes;       ///< hand over a procfs without hidepid

  // root
  const char* scratch_size;  ///< tmpfs options, decimal
  const char* scratch_inodes;
  const char* scratch_folder;  ///< a directory of the host instead of a tmpfs; null: a tmpfs
  int scratch_tree;            ///< the same as a detached mount from the parent; -1: none
  std::uint64_t scratch_device;
  std::uint64_t scratch_inode;
  bool waits_for_copies;  ///< the parent fills copied directories before the command starts
  const Step* steps;
  std::size_t step_count;

  // payload
  bool interactive;
  winsize window;
  const char* working_directory;
  const Limit* limits;
  std::size_t limit_count;
  int landlock_abi;
  bool landlock_files;
  const LandlockRule* landlock_rules;
  std::size_t landlock_rule_count;
  sock_fprog filter;
  bool notifies;
  const char* executable;
  char* const* argv;
  char* const* envp;

  Fault fault;

  // written by the child
  int terminal_master;
  int terminal_slave;
  int scratch;    ///< the private tmpfs
  int processes;  ///< procfs without hidepid
  int listener;   ///< left by the payload in the shared descriptor table
};

/// The child after clone3. Never returns.
[[noreturn]] void run_init(Program& program);

// ---- between the child's own files ----

/// Creates the part of the network that is made inside: meeting point 2a.
void make_network(const Program& program);
/// Returns when the gateway is ready.
void wait_for_network(const Program& program);
/// Sends a report with up to kMostReported descriptors.
inline constexpr std::size_t kMostReported = kMostWishes + 4;
long send_report(const Program& program, control::Report report, const int* fds, std::size_t count);
/// Waits for the supervisor's next order; ends PID 1 if it is not `expected`.
void wait_for_order(const Program& program, control::FromSupervisor expected);
/// Builds the root and enters it: meeting point 3.
void build_root(Program& program);
/// The payload, in the address space and descriptor table of PID 1 until execve: meeting point 4. Never returns.
int run_payload(void* program);

}  // namespace sbx::child
