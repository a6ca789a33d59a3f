#include "policy/symbols.hpp"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/letters.hpp"
#include "policy/keys.hpp"

namespace sbx::policy {
namespace {

struct Symbol {
  std::string_view name;
  std::uint64_t value;
};

#define SBX_SYMBOL(name) {#name, static_cast<std::uint64_t>(name)}
constexpr auto kSymbols = std::to_array<Symbol>({
    // socket(2): families, types, protocols
    SBX_SYMBOL(AF_UNSPEC),
    SBX_SYMBOL(AF_UNIX),
    SBX_SYMBOL(AF_LOCAL),
    SBX_SYMBOL(AF_INET),
    SBX_SYMBOL(AF_INET6),
    SBX_SYMBOL(AF_NETLINK),
    SBX_SYMBOL(AF_PACKET),
    SBX_SYMBOL(AF_VSOCK),
    SBX_SYMBOL(AF_ALG),
    SBX_SYMBOL(AF_BLUETOOTH),
    SBX_SYMBOL(AF_CAN),
    SBX_SYMBOL(AF_XDP),
    SBX_SYMBOL(SOCK_STREAM),
    SBX_SYMBOL(SOCK_DGRAM),
    SBX_SYMBOL(SOCK_RAW),
    SBX_SYMBOL(SOCK_SEQPACKET),
    SBX_SYMBOL(SOCK_CLOEXEC),
    SBX_SYMBOL(SOCK_NONBLOCK),
    SBX_SYMBOL(IPPROTO_IP),
    SBX_SYMBOL(IPPROTO_TCP),
    SBX_SYMBOL(IPPROTO_UDP),
    SBX_SYMBOL(IPPROTO_ICMP),
    SBX_SYMBOL(IPPROTO_ICMPV6),
    SBX_SYMBOL(IPPROTO_SCTP),
    SBX_SYMBOL(IPPROTO_RAW),
    SBX_SYMBOL(NETLINK_ROUTE),
    SBX_SYMBOL(NETLINK_AUDIT),
    SBX_SYMBOL(NETLINK_KOBJECT_UEVENT),
    SBX_SYMBOL(NETLINK_NETFILTER),
    SBX_SYMBOL(NETLINK_GENERIC),
    SBX_SYMBOL(SOL_SOCKET),
    // clone(2), unshare(2), setns(2)
    SBX_SYMBOL(CLONE_VM),
    SBX_SYMBOL(CLONE_FS),
    SBX_SYMBOL(CLONE_FILES),
    SBX_SYMBOL(CLONE_SIGHAND),
    SBX_SYMBOL(CLONE_PTRACE),
    SBX_SYMBOL(CLONE_VFORK),
    SBX_SYMBOL(CLONE_PARENT),
    SBX_SYMBOL(CLONE_THREAD),
    SBX_SYMBOL(CLONE_NEWNS),
    SBX_SYMBOL(CLONE_NEWCGROUP),
    SBX_SYMBOL(CLONE_NEWUTS),
    SBX_SYMBOL(CLONE_NEWIPC),
    SBX_SYMBOL(CLONE_NEWUSER),
    SBX_SYMBOL(CLONE_NEWPID),
    SBX_SYMBOL(CLONE_NEWNET),
    // mmap(2), mprotect(2)
    SBX_SYMBOL(PROT_NONE),
    SBX_SYMBOL(PROT_READ),
    SBX_SYMBOL(PROT_WRITE),
    SBX_SYMBOL(PROT_EXEC),
    SBX_SYMBOL(MAP_SHARED),
    SBX_SYMBOL(MAP_PRIVATE),
    SBX_SYMBOL(MAP_FIXED),
    SBX_SYMBOL(MAP_ANONYMOUS),
    SBX_SYMBOL(MAP_HUGETLB),
    SBX_SYMBOL(MAP_LOCKED),
    // ioctl(2), fcntl(2), open(2)
    SBX_SYMBOL(TIOCSTI),
    SBX_SYMBOL(TIOCLINUX),
    SBX_SYMBOL(TIOCSCTTY),
    SBX_SYMBOL(TIOCNOTTY),
    SBX_SYMBOL(TIOCGWINSZ),
    SBX_SYMBOL(TCGETS),
    SBX_SYMBOL(FIONREAD),
    SBX_SYMBOL(FIONBIO),
    SBX_SYMBOL(F_DUPFD),
    SBX_SYMBOL(F_GETFL),
    SBX_SYMBOL(F_SETFL),
    SBX_SYMBOL(F_SETOWN),
    SBX_SYMBOL(F_SETPIPE_SZ),
    SBX_SYMBOL(F_ADD_SEALS),
    SBX_SYMBOL(O_RDONLY),
    SBX_SYMBOL(O_WRONLY),
    SBX_SYMBOL(O_RDWR),
    SBX_SYMBOL(O_CREAT),
    SBX_SYMBOL(O_PATH),
    SBX_SYMBOL(O_TMPFILE),
    SBX_SYMBOL(O_DIRECT),
    // prctl(2), personality(2), prlimit(2)
    SBX_SYMBOL(PR_SET_NAME),
    SBX_SYMBOL(PR_SET_DUMPABLE),
    SBX_SYMBOL(PR_SET_PDEATHSIG),
    SBX_SYMBOL(PR_SET_SECCOMP),
    SBX_SYMBOL(PR_SET_NO_NEW_PRIVS),
    SBX_SYMBOL(PR_SET_MM),
    SBX_SYMBOL(PR_SET_PTRACER),
    SBX_SYMBOL(PR_SET_CHILD_SUBREAPER),
    SBX_SYMBOL(PR_CAPBSET_DROP),
    SBX_SYMBOL(ADDR_NO_RANDOMIZE),
    SBX_SYMBOL(READ_IMPLIES_EXEC),
    SBX_SYMBOL(PER_LINUX),
    SBX_SYMBOL(PER_LINUX32),
    SBX_SYMBOL(RLIMIT_CPU),
    SBX_SYMBOL(RLIMIT_FSIZE),
    SBX_SYMBOL(RLIMIT_NOFILE),
    SBX_SYMBOL(RLIMIT_NPROC),
    SBX_SYMBOL(RLIMIT_STACK),
    SBX_SYMBOL(RLIMIT_CORE),
    // kill(2)
    SBX_SYMBOL(SIGHUP),
    SBX_SYMBOL(SIGINT),
    SBX_SYMBOL(SIGQUIT),
    SBX_SYMBOL(SIGKILL),
    SBX_SYMBOL(SIGUSR1),
    SBX_SYMBOL(SIGUSR2),
    SBX_SYMBOL(SIGTERM),
    SBX_SYMBOL(SIGSTOP),
    SBX_SYMBOL(SIGCONT),
});
#undef SBX_SYMBOL

}  // namespace

std::optional<std::uint64_t> symbol_value(std::string_view text) {
  if (trimmed(text, " ").empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (const std::string_view part : split(text, '|')) {
    const auto found = std::ranges::find(kSymbols, trimmed(part, " "), &Symbol::name);
    if (found == kSymbols.end()) return std::nullopt;
    value |= found->value;
  }
  return value;
}

std::string_view suggest_symbol(std::string_view text) {
  std::vector<std::string_view> names;
  for (const Symbol& symbol : kSymbols) names.push_back(symbol.name);
  for (const std::string_view part : split(text, '|')) {
    if (!symbol_value(part)) return nearest(trimmed(part, " "), names);
  }
  return {};
}

}  // namespace sbx::policy
