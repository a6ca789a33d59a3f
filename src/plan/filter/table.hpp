#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "plan/filter/arch.hpp"

/// The checked-in table of system calls and their groups: data only.
namespace sbx::plan {

/// How a call stands without a word from the policy (see the head of syscalls_x86_64.def).
enum class Standing : std::uint8_t { own, minimal, standard, denied, quiet, absent };

/// The condition on arguments under which a call is admitted.
enum class Guard : std::uint8_t {
  none,
  socket,         ///< family, type, protocol
  socketpair,     ///< family
  clone,          ///< no namespaces; processes as the policy says
  ioctl,          ///< not TIOCSTI, TIOCLINUX, TIOCSETD
  prctl,          ///< known options of the process's own
  prlimit,        ///< new limits for the process itself only
  personality,    ///< ask, or the default
  seccomp,        ///< no second listener
  affinity,       ///< not where the affinity is the CPU budget
  unseen_memory,  ///< not where memory is polled: no process need map what it holds
  unseen_writes,  ///< not where writes are polled: no process's count has them
  mode,           ///< where files reach the host: no set-user-ID or set-group-ID bit
  new_mode,       ///< the same for a file that open(2) makes
  unseen_mode,    ///< not where files reach the host: the mode lies in memory
  node,           ///< as mode; no devices; FIFOs and sockets where Landlock keeps them in
  whiteout,       ///< renameat2: no whiteout where files reach the host
};

enum class Group : std::uint8_t {
  always,
  basic_io,
  io_event,
  file_read,
  file_write,
  file_lock,
  sync,
  memory,
  thread,
  signal,
  timer,
  scheduling,
  resources,
  process,
  process_spawn,
  identity,
  ipc,
  network,
  system_info,
  self_restriction,
  debug,
  profile,
  aio,
  io_uring,
  numa,
  mount,
  namespace_,
  keyring,
  handle,
  fanotify,
  bpf,
  memory_tricks,
  module,
  reboot,
  swap,
  clock,
  raw_io,
  privileged,
  obsolete,
};

struct Decision {
  Standing standing{};
  Guard guard = Guard::none;
  std::uint16_t quiet_errno = 0;
};

/// Text is held in place, not pointed to: no relocations at start.
struct Call {
  std::uint16_t number;
  char name[24];
  char arguments[7];  ///< 'w' 64 bits, 'i' 32, 'h' 16 each
  Decision decision;
  Group group;
  char reason[97];
};

struct GroupText {
  char name[20];  ///< "@debug"
  char description[112];
  char risk[96];         ///< what granting it means; empty for harmless ones
  bool needs_privilege;  ///< the kernel refuses these to the sandbox whatever a filter says
};

/// All calls, by rising number.
[[nodiscard]] std::span<const Call> calls();
/// One above the newest number of the table.
[[nodiscard]] int call_limit();
/// nullptr for a hole, a negative number, or one above the newest.
[[nodiscard]] const Call* find_call(int number);
[[nodiscard]] const Call* find_call(std::string_view name);

[[nodiscard]] const GroupText& text_of(Group group);
/// "@debug" -> Group::debug.
[[nodiscard]] std::optional<Group> find_group(std::string_view name);
[[nodiscard]] std::size_t group_count();

/// True for calls that must stay on the kernel's always-allow bitmap (Linux 5.11): an argument rule
/// takes a call off it.
[[nodiscard]] bool is_hot(const Call& call);

/// Width in bits of an argument, 0 when the call has no such argument.
[[nodiscard]] int argument_bits(const Call& call, int argument);

/// The known name nearest to a mistyped one (a call, or a group when it begins with '@'); empty
/// when none is near.
[[nodiscard]] std::string_view nearest_name(std::string_view name);

}  // namespace sbx::plan
