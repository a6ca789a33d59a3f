#pragma once

#include <linux/audit.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

/// The checked-in table of system calls and their groups: data only.
namespace sbx::plan {

// What differs between architectures, besides the numbers themselves.
#if defined(__x86_64__)
#define SBX_CALL_NUMBER(x86_64, aarch64) (x86_64)
inline constexpr std::uint32_t kAuditArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
#define SBX_CALL_NUMBER(x86_64, aarch64) (aarch64)
inline constexpr std::uint32_t kAuditArch = AUDIT_ARCH_AARCH64;
#else
#error "syscalls.def has no numbers for this architecture"
#endif
/// The first system call number of x32, the other ABI that reports AUDIT_ARCH_X86_64 (seccomp(2),
/// "Caveats"). No ABI but its own reports AUDIT_ARCH_AARCH64; the same bound there lets compiled
/// filters differ in numbers only.
inline constexpr std::uint32_t kForeignAbiStart = 0x40000000;

/// A call's standing by default (see the head of syscalls.def).
enum class Standing : std::uint8_t { own, minimal, standard, denied, quiet, absent };

/// The condition on arguments under which a call is admitted.
enum class ArgumentGuard : std::uint8_t {
  none,
  socket,         ///< family, type, protocol
  socketpair,     ///< family
  clone,          ///< no namespaces; processes as the policy permits
  ioctl,          ///< not TIOCSTI, TIOCLINUX, TIOCSETD
  prctl,          ///< known options that affect only the process itself
  prlimit,        ///< only read limits, or set the process's own
  personality,    ///< only queries, or the default
  seccomp,        ///< no second listener
  affinity,       ///< denied where the affinity is the CPU budget
  unseen_memory,  ///< denied where memory is polled: no process has to map it
  unseen_writes,  ///< denied where writes are polled: no process's count includes them
  mode,           ///< where files reach the host: no set-user-ID or set-group-ID bit
  new_mode,       ///< the same for a file that open(2) makes
  unseen_mode,    ///< denied where files reach the host: the mode is in memory
  node,      ///< as mode; no devices; FIFOs and sockets only where Landlock keeps them out of live
             ///< grants
  whiteout,  ///< renameat2: no whiteout where files reach the host
  socket_option,  ///< without namespaces: none by which a socket gets an abstract name
  watch,          ///< denied where /proc is the caller's: events there tell what others do
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
  ArgumentGuard guard = ArgumentGuard::none;
  std::uint16_t quiet_errno = 0;
};

/// Text is stored in place: pointers would need relocations at start.
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
  char risk[96];         ///< consequence of granting it; empty if harmless
  bool needs_privilege;  ///< the kernel refuses these in the sandbox, whatever the filter allows
};

/// All calls of this architecture, by rising number.
[[nodiscard]] std::span<const Call> calls();
/// One above the newest number of the table.
[[nodiscard]] int call_limit();
/// nullptr for a gap, a negative number, or one above the newest.
[[nodiscard]] const Call* find_call(int number);
[[nodiscard]] const Call* find_call(std::string_view name);
/// The row of a call that other architectures have and this one lacks; it has no number. nullptr
/// for any other name.
[[nodiscard]] const Call* find_absent_call(std::string_view name);
/// What C libraries use in place of an absent call: a call of this architecture, or a "@group";
/// empty if nothing.
[[nodiscard]] std::string_view used_instead(std::string_view name);

[[nodiscard]] const GroupText& text_of(Group group);
/// "@debug" -> Group::debug.
[[nodiscard]] std::optional<Group> find_group(std::string_view name);
[[nodiscard]] std::size_t group_count();

/// True for calls that must stay on the kernel's always-allow bitmap (Linux 5.11): an argument rule
/// removes a call from it.
[[nodiscard]] bool is_hot(const Call& call);

/// Width of an argument in bits; 0 if the call has no such argument.
[[nodiscard]] int argument_bits(const Call& call, int argument);

/// The known name nearest to a misspelled one (a call, or a group if it begins with '@'); empty if
/// none is near.
[[nodiscard]] std::string_view nearest_name(std::string_view name);

}  // namespace sbx::plan
