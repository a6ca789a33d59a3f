#include "plan/filter/guards.hpp"

#include "plan/filter/outside.hpp"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <string_view>

namespace sbx::plan {
namespace {

static_assert(kNamespaceFlags == (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                  CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET));

// Newer than the headers of Debian 12, prctl(2).
constexpr std::uint64_t kPrSchedCore = 62;
constexpr std::uint64_t kNewestPrctl = 78;  // PR_FUTEX_HASH, Linux 6.16
constexpr std::uint64_t kPrGetAuxv = 0x41555856;

// FS_IOC_RESVSP, FS_IOC_RESVSP64 and FS_IOC_ZERO_RANGE: in no header of the C library.
constexpr std::uint64_t kReserve = 0x40305828;
constexpr std::uint64_t kReserve64 = 0x4030582a;
constexpr std::uint64_t kZeroRange = 0x40305839;

Action allow() {
  return {};
}
Action deny(int error, Cause cause) {
  return {.kind = Action::Kind::deny, .error = static_cast<std::uint16_t>(error), .cause = cause};
}
Action refuse_quietly(int error, Cause cause) {
  return {.kind = Action::Kind::quiet, .error = static_cast<std::uint16_t>(error), .cause = cause};
}

Condition word_is(unsigned argument, std::uint64_t value) {
  return {.argument = static_cast<std::uint8_t>(argument), .bits = 32, .value = value};
}
Condition word_masked(unsigned argument, std::uint64_t mask, std::uint64_t value) {
  return {.argument = static_cast<std::uint8_t>(argument),
          .bits = 32,
          .compare = Compare::masked_equal,
          .value = value,
          .mask = mask};
}

bool vouched(const GuardRequest& request, unsigned argument) {
  return (request.vouched >> argument & 1) != 0;
}

/// Every C library asks for the name service's socket first, and goes on without.
Tree::Id unix_socket_outside(Tree& tree, const GuardRequest& request) {
  if (!request.context.named_sockets)
    return tree.leaf(refuse_quietly(EAFNOSUPPORT, Cause::outside));
  // Others send to any address that they name; RAW is DGRAM (unix_create).
  return tree.any({word_masked(1, 0xf, SOCK_STREAM), word_masked(1, 0xf, SOCK_SEQPACKET)},
                  tree.leaf(allow()), tree.leaf(refuse_quietly(ESOCKTNOSUPPORT, Cause::outside)));
}

// socket(family, type, protocol): the kernel reads all three as int, and masks SOCK_CLOEXEC and
// SOCK_NONBLOCK out of the type.
Tree::Id internet_socket(Tree& tree, const GuardRequest& request) {
  const Tree::Id admitted = tree.leaf(allow());
  Tree::Id protocol = admitted;
  if (!vouched(request, 2)) {
    // Go probes for MPTCP at start and accepts a kernel without it.
    const Tree::Id other = tree.branch(
        word_is(2, IPPROTO_MPTCP), tree.leaf(refuse_quietly(EPROTONOSUPPORT, Cause::quiet_table)),
        tree.leaf(deny(EPROTONOSUPPORT, Cause::socket_protocol)));
    protocol = tree.any({word_is(2, 0), word_is(2, IPPROTO_TCP), word_is(2, IPPROTO_UDP)}, admitted,
                        other);
  }
  if (vouched(request, 1)) return protocol;
  // The kernel's own answers: EPERM for a raw socket without CAP_NET_RAW, ESOCKTNOSUPPORT for a
  // type it lacks.
  const Tree::Id other_type =
      tree.branch(word_masked(1, 0xf, SOCK_RAW), tree.leaf(deny(EPERM, Cause::socket_type)),
                  tree.leaf(deny(ESOCKTNOSUPPORT, Cause::socket_type)));
  return tree.any({word_masked(1, 0xf, SOCK_STREAM), word_masked(1, 0xf, SOCK_DGRAM)}, protocol,
                  other_type);
}

Tree::Id netlink_socket(Tree& tree, const GuardRequest& request) {
  const Tree::Id admitted = tree.leaf(allow());
  if (vouched(request, 2)) return admitted;
  return tree.branch(word_is(2, NETLINK_ROUTE), admitted,
                     tree.leaf(deny(EPROTONOSUPPORT, Cause::socket_protocol)));
}

Tree::Id socket_guard(Tree& tree, const GuardRequest& request) {
  Tree::Id node = 0;
  if (request.by_name) {
    node = tree.leaf(allow());
  } else {
    const Tree::Id other = vouched(request, 0)
                               ? tree.leaf(allow())
                               : tree.leaf(deny(EAFNOSUPPORT, Cause::socket_family));
    const Tree::Id netlink =
        tree.branch(word_is(0, AF_NETLINK), netlink_socket(tree, request), other);
    const Tree::Id internet = internet_socket(tree, request);
    node = tree.any({word_is(0, AF_INET), word_is(0, AF_INET6)}, internet, netlink);
    node = tree.branch(word_is(0, AF_UNIX), tree.leaf(allow()), node);
  }
  // No rule lifts this one: with the host's network and no Landlock scope it would expose the
  // host's abstract sockets.
  if (!request.context.unix_sockets) {
    node =
        tree.branch(word_is(0, AF_UNIX), tree.leaf(deny(EAFNOSUPPORT, Cause::socket_unix)), node);
  }
  // In the machine's own network even loopback leads to other programs.
  if (!request.context.internet_sockets) node = tree.leaf(deny(EAFNOSUPPORT, Cause::outside));
  if (request.context.outside_namespaces)
    node = tree.branch(word_is(0, AF_UNIX), unix_socket_outside(tree, request), node);
  return node;
}

// clone's flags: the kernel reads the lower half of the register; its low byte is the exit signal.
Tree::Id clone_guard(Tree& tree, const GuardRequest& request) {
  Tree::Id node = tree.leaf(allow());
  if (!request.spawns) {
    node = tree.branch(word_masked(0, CLONE_THREAD, CLONE_THREAD), node,
                       tree.leaf(request.spawn_refusal));
  }
  return tree.branch(word_masked(0, kNamespaceFlags, 0), node,
                     tree.leaf(deny(EPERM, Cause::namespaces)));
}

Tree::Id ioctl_guard(Tree& tree, const GuardRequest& request) {
  Tree::Id admitted = tree.leaf(allow());
  if (request.context.outside_namespaces)
    admitted =
        tree.any(harmless_requests(), admitted, tree.leaf(refuse_quietly(ENOTTY, Cause::outside)));
  if (vouched(request, 1)) return admitted;
  // TIOCSTI and TIOCLINUX inject input into a terminal; TIOCSETD loads line-discipline modules.
  const Tree::Id terminal =
      tree.any({word_is(1, TIOCSTI), word_is(1, TIOCLINUX), word_is(1, TIOCSETD)},
               tree.leaf(deny(EPERM, Cause::terminal_input)), admitted);
  if (!request.context.writes_are_polled) return terminal;
  // The same as fallocate, on every file system (ioctl_preallocate).
  return tree.any({word_is(1, kReserve), word_is(1, kReserve64), word_is(1, kZeroRange)},
                  tree.leaf(refuse_quietly(EOPNOTSUPP, Cause::polled_writes)), terminal);
}

Tree::Id prctl_guard(Tree& tree, const GuardRequest& request) {
  const Tree::Id admitted = tree.leaf(allow());
  // The files of a non-dumpable process in /proc belong to root, so sbx can't read all of them.
  const Condition off{.argument = 1, .bits = 64, .value = 0};
  const auto stays_dumpable = [&](Tree::Id others, Cause cause) {
    const Tree::Id dumpable = tree.branch(off, tree.leaf(deny(EPERM, cause)), admitted);
    return tree.branch(word_is(0, PR_SET_DUMPABLE), dumpable, others);
  };
  if (vouched(request, 0) || request.by_name)
    return request.context.outside_namespaces ? stays_dumpable(admitted, Cause::outside) : admitted;
  // PR_SET_MM forges /proc/self/exe and cmdline. A core-scheduling cookie forces the sibling CPU
  // idle, which no budget counts. The memory-error policy belongs to the administrator.
  const Tree::Id unknown = tree.leaf(refuse_quietly(EINVAL, Cause::quiet_table));
  const Tree::Id named =
      tree.any({word_is(0, PR_SET_PTRACER), word_is(0, PR_SET_VMA), word_is(0, kPrGetAuxv)},
               admitted, unknown);
  const Tree::Id known =
      tree.branch({.argument = 0, .bits = 32, .compare = Compare::greater, .value = kNewestPrctl},
                  named, admitted);
  const Tree::Id others =
      tree.any({word_is(0, PR_SET_MM), word_is(0, kPrSchedCore), word_is(0, PR_MCE_KILL)},
               tree.leaf(deny(EPERM, Cause::prctl_option)), known);
  if (request.context.outside_namespaces) return stays_dumpable(others, Cause::outside);
  return request.context.writes_are_polled ? stays_dumpable(others, Cause::unreadable) : others;
}

// prlimit64(pid, resource, new, old): lowering RLIMIT_CPU kills another process, PID 1 included,
// dumpable or not.
Tree::Id prlimit_guard(Tree& tree, const GuardRequest& request) {
  const Tree::Id admitted = tree.leaf(allow());
  if (vouched(request, 0)) return admitted;
  const Condition only_reads{.argument = 2, .bits = 64, .value = 0};
  return tree.any({word_is(0, 0), only_reads}, admitted,
                  tree.leaf(deny(EPERM, Cause::other_process)));
}

Tree::Id personality_guard(Tree& tree, const GuardRequest& request) {
  const Tree::Id admitted = tree.leaf(allow());
  if (vouched(request, 0) || request.by_name) return admitted;
  return tree.any({word_is(0, 0), word_is(0, 0xffffffff)}, admitted,
                  tree.leaf(deny(EPERM, Cause::personality)));
}

Tree::Id seccomp_guard(Tree& tree, const GuardRequest& request) {
  const Tree::Id admitted = tree.leaf(allow());
  if (vouched(request, 1) || request.by_name) return admitted;
  const Tree::Id flags = tree.branch(word_masked(1, SECCOMP_FILTER_FLAG_NEW_LISTENER, 0), admitted,
                                     tree.leaf(deny(EPERM, Cause::second_listener)));
  return tree.branch(word_is(0, SECCOMP_SET_MODE_FILTER), flags, admitted);
}

Tree::Id socketpair_guard(Tree& tree, const GuardRequest& request) {
  const Tree::Id admitted = tree.leaf(allow());
  // An end of a pair of another type sends to any address that it names (unix_dgram_sendmsg); RAW
  // is DGRAM.
  if (request.context.outside_namespaces) {
    const Tree::Id connected =
        tree.any({word_masked(1, 0xf, SOCK_STREAM), word_masked(1, 0xf, SOCK_SEQPACKET)}, admitted,
                 tree.leaf(deny(EPROTONOSUPPORT, Cause::outside)));
    return tree.branch(word_is(0, AF_UNIX), connected,
                       tree.leaf(deny(EAFNOSUPPORT, Cause::socketpair_family)));
  }
  if (vouched(request, 0) || request.by_name) return admitted;
  return tree.branch(word_is(0, AF_UNIX), admitted,
                     tree.leaf(deny(EAFNOSUPPORT, Cause::socketpair_family)));
}

// A stream socket that passes credentials and has no name gets an abstract one by connect(2), also
// by one that fails (unix_autobind), and could listen there.
Tree::Id socket_option_guard(Tree& tree) {
  constexpr std::uint64_t kPassPidfd = 76;  // SO_PASSPIDFD, Linux 6.5
  const Tree::Id admitted = tree.leaf(allow());
  const Tree::Id of_sockets =
      tree.any({word_is(2, SO_PASSCRED), word_is(2, kPassPidfd)},
               tree.leaf(refuse_quietly(ENOPROTOOPT, Cause::outside)), admitted);
  return tree.branch(word_is(1, SOL_SOCKET), of_sockets, admitted);
}

Condition mode_masked(const GuardRequest& request, std::uint64_t mask, std::uint64_t value) {
  return {.argument = static_cast<std::uint8_t>(mode_argument(request.call)),
          .bits = 16,
          .compare = Compare::masked_equal,
          .value = value,
          .mask = mask};
}

bool is_lifted(const GuardRequest& request) {
  return request.by_name || vouched(request, mode_argument(request.call));
}

Tree::Id mode_guard(Tree& tree, const GuardRequest& request, Tree::Id admitted) {
  return tree.branch(mode_masked(request, S_ISUID | S_ISGID, 0), admitted,
                     tree.leaf(deny(EPERM, Cause::set_id_mode)));
}

// The kernel ignores the mode unless the call may create a file (build_open_how); otherwise its
// register is arbitrary, because glibc passes none.
Tree::Id new_mode_guard(Tree& tree, const GuardRequest& request) {
  constexpr std::uint64_t kNameless = O_TMPFILE & ~O_DIRECTORY;
  const Tree::Id admitted = tree.leaf(allow());
  return tree.branch(word_masked(mode_argument(request.call) - 1, O_CREAT | kNameless, 0), admitted,
                     mode_guard(tree, request, admitted));
}

// A whiteout, device number 0:0, needs no privilege since Linux 5.8.
Tree::Id node_guard(Tree& tree, const GuardRequest& request) {
  const Tree::Id refusal = tree.leaf(deny(EPERM, Cause::special_file));
  Tree::Id node = tree.leaf(allow());
  if (request.context.special_files_reach_host)
    node = tree.any({mode_masked(request, S_IFMT, S_IFIFO), mode_masked(request, S_IFMT, S_IFSOCK)},
                    refusal, node);
  node = tree.any({mode_masked(request, S_IFMT, S_IFCHR), mode_masked(request, S_IFMT, S_IFBLK)},
                  refusal, node);
  return mode_guard(tree, request, node);
}

// Leaves a whiteout (device 0:0) behind, unprivileged since Linux 5.8; Landlock treats it as a
// rename.
Tree::Id whiteout_guard(Tree& tree, const GuardRequest& request) {
  constexpr unsigned kFlags = 4;
  constexpr std::uint64_t kWhiteout = 4;  // RENAME_WHITEOUT
  if (request.by_name || vouched(request, kFlags)) return tree.leaf(allow());
  return tree.branch(word_masked(kFlags, kWhiteout, 0), tree.leaf(allow()),
                     tree.leaf(deny(EPERM, Cause::whiteout)));
}

Tree::Id file_guard(Tree& tree, const GuardRequest& request) {
  const ArgumentGuard guard = request.call.decision.guard;
  if (guard == ArgumentGuard::whiteout) return whiteout_guard(tree, request);
  if (guard == ArgumentGuard::unseen_mode)
    return tree.leaf(request.by_name ? allow() : refuse_quietly(ENOSYS, Cause::unseen_mode));
  if (is_lifted(request)) return tree.leaf(allow());
  if (guard == ArgumentGuard::new_mode) return new_mode_guard(tree, request);
  if (guard == ArgumentGuard::node) return node_guard(tree, request);
  return mode_guard(tree, request, tree.leaf(allow()));
}

}  // namespace

unsigned mode_argument(const Call& call) {
  return static_cast<unsigned>(std::string_view(call.arguments).find('h'));
}

bool may_refuse(ArgumentGuard guard, const FilterContext& context) {
  switch (guard) {
    case ArgumentGuard::none:
      return false;
    case ArgumentGuard::mode:
    case ArgumentGuard::new_mode:
    case ArgumentGuard::unseen_mode:
    case ArgumentGuard::node:
    case ArgumentGuard::whiteout:
      return context.files_reach_host;
    case ArgumentGuard::watch:
      return context.shows_outer_proc;
    case ArgumentGuard::socket_option:
      return context.named_sockets;
    default:
      return true;
  }
}

Tree::Id guard_tree(Tree& tree, const GuardRequest& request) {
  const ArgumentGuard guard = request.call.decision.guard;
  if (!may_refuse(guard, request.context)) return tree.leaf(allow());
  switch (guard) {
    case ArgumentGuard::none:
      return tree.leaf(allow());
    case ArgumentGuard::socket:
      return socket_guard(tree, request);
    case ArgumentGuard::socketpair:
      return socketpair_guard(tree, request);
    case ArgumentGuard::clone:
      return clone_guard(tree, request);
    case ArgumentGuard::ioctl:
      return ioctl_guard(tree, request);
    case ArgumentGuard::prctl:
      return prctl_guard(tree, request);
    case ArgumentGuard::prlimit:
      return prlimit_guard(tree, request);
    case ArgumentGuard::personality:
      return personality_guard(tree, request);
    case ArgumentGuard::seccomp:
      return seccomp_guard(tree, request);
    case ArgumentGuard::affinity:
      return tree.leaf(request.context.affinity_is_budget
                           ? refuse_quietly(EPERM, Cause::affinity_budget)
                           : allow());
    case ArgumentGuard::unseen_memory:
      return tree.leaf(request.context.memory_is_polled && !request.by_name
                           ? refuse_quietly(ENOSYS, Cause::polled_memory)
                           : allow());
    case ArgumentGuard::unseen_writes:
      return tree.leaf(request.context.writes_are_polled && !request.by_name
                           ? refuse_quietly(EOPNOTSUPP, Cause::polled_writes)
                           : allow());
    case ArgumentGuard::mode:
    case ArgumentGuard::new_mode:
    case ArgumentGuard::unseen_mode:
    case ArgumentGuard::node:
    case ArgumentGuard::whiteout:
      return file_guard(tree, request);
    case ArgumentGuard::socket_option:
      return socket_option_guard(tree);
    case ArgumentGuard::watch:
      return tree.leaf(refuse_quietly(ENOSYS, Cause::outer_proc));
  }
  return tree.leaf(deny(EPERM, Cause::not_in_base));
}

}  // namespace sbx::plan
