// The part of the sandbox's network that is created inside: namespaces, and sockets that the
// supervisor uses from outside. Child-safe: see child.cpp.

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>

#include "spawn/child_calls.hpp"
#include "spawn/child_stages.hpp"

namespace sbx::child {
namespace {

constexpr int kBacklog = 128;

/// Descriptors to hand over, in the order that control::FromPid1::network specifies.
struct Handed {
  int fds[kMostReported];
  std::size_t count = 0;
  void add(long fd) { fds[count++] = static_cast<int>(fd); }
};

/// A netlink socket stays with the namespace in which it was opened, whoever holds it.
long open_netlink() {
  return ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
}

long open_network_space() {
  return ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

/// /proc/sys/net shows the settings of the reader's network namespace, so this changes nothing on
/// the host. If /proc/sys is read-only (containers) it changes nothing at all.
void set_network(const char* setting, char value) {
  const int fd = ::open(setting, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!::write(fd, &value, 1);
  ::close(fd);
}

/// Without this the gateway would answer every ping, because every address is its own.
void ignore_echo() {
  set_network("/proc/sys/net/ipv4/icmp_echo_ignore_all", '1');
  set_network("/proc/sys/net/ipv6/icmp/echo_ignore_all", '1');
}

/// Lets servers bind to 80 and 443 without CAP_NET_BIND_SERVICE: the sandbox shares these ports
/// with no other program.
void open_low_ports() {
  set_network("/proc/sys/net/ipv4/ip_unprivileged_port_start", '0');
}

int make_socket(const Program& program, Stage stage, std::size_t index,
                const SocketRequest& request) {
  const int fd = static_cast<int>(must(
      program, stage, index,
      ::socket(request.domain, request.type | SOCK_NONBLOCK | SOCK_CLOEXEC, request.protocol)));
  if (request.loopback_port == 0) return fd;
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(request.loopback_port);
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  must(program, stage, index, ::bind(fd, reinterpret_cast<const sockaddr*>(&place), sizeof place));
  if (request.type == SOCK_STREAM) must(program, stage, index, ::listen(fd, kBacklog));
  return fd;
}

void make_sockets(const Program& program, Stage stage, bool in_gateway, Handed& handed) {
  for (std::size_t i = 0; i < program.socket_count; ++i)
    if (program.sockets[i].in_gateway == in_gateway)
      handed.add(make_socket(program, stage, i, program.sockets[i]));
}

/// The gateway's half comes first, because the clone starts in its namespace and need not return to
/// it.
void make_gateway(const Program& program, Handed& handed) {
  if (!enter(program, Stage::gateway)) return;
  handed.add(must(program, Stage::gateway, 0, open_netlink()));
  handed.add(must(program, Stage::gateway, 1, open_network_space()));
  const std::size_t place_of_netlink = handed.count++;
  make_sockets(program, Stage::gateway, true, handed);
  ignore_echo();
  if (enter(program, Stage::own_network))
    must(program, Stage::own_network, 0, call(SYS_unshare, CLONE_NEWNET));
  handed.fds[place_of_netlink] = static_cast<int>(must(program, Stage::gateway, 2, open_netlink()));
}

void raise_loopback(const Program& program) {
  if (!enter(program, Stage::loopback)) return;
  const long probe =
      must(program, Stage::loopback, 0, ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  must(program, Stage::loopback, 1, ::ioctl(static_cast<int>(probe), SIOCSIFFLAGS, &request));
  ::close(static_cast<int>(probe));
}

/// Sockets bound to the loopback interface need it up.
void make_own_sockets(const Program& program, Handed& handed) {
  if ((program.socket_count == 0 && !program.hand_space) || !enter(program, Stage::sockets)) return;
  if (program.hand_space) handed.add(must(program, Stage::sockets, 0, open_network_space()));
  make_sockets(program, Stage::sockets, false, handed);
}

}  // namespace

void make_network(const Program& program) {
  if (!program.own_network) return;
  Handed handed;
  if (program.gateway) make_gateway(program, handed);
  open_low_ports();
  raise_loopback(program);
  make_own_sockets(program, handed);
  if (handed.count == 0) return;
  const control::Report report{control::FromPid1::network, program.hand_space ? 1 : 0};
  must(program, Stage::sockets, 0, send_report(program, report, handed.fds, handed.count));
  for (std::size_t i = 0; i < handed.count; ++i) ::close(handed.fds[i]);
}

void wait_for_network(const Program& program) {
  if (program.gateway) wait_for_order(program, control::FromSupervisor::network_ready);
}

}  // namespace sbx::child
