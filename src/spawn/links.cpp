#include "spawn/links.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "base/network_addresses.hpp"

namespace sbx::spawn {
namespace {

using Message = std::unique_ptr<nl_msg, decltype(&::nlmsg_free)>;

constexpr int kLoopback = 1;
/// A high number, because a new namespace may have its own tunnel devices from 2 on
/// (net.core.fb_tunnels_only_for_init_net).
constexpr int kLink = 100;

std::unexpected<Error> out_of_memory() {
  return fail({.kind = ErrorKind::setup,
               .code = "setup-links",
               .message = "cannot make a netlink message",
               .errno_value = ENOMEM});
}

/// Configures one namespace through a socket that was opened inside: the socket determines the
/// namespace, wherever it is used.
class Netlink {
 public:
  static Result<Netlink> adopt(const UniqueFd& fd) {
    Netlink netlink;
    if (netlink.socket_ == nullptr) return out_of_memory();
    UniqueFd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));  // libnl closes what it adopts
    const int answer = ::nl_socket_set_fd(netlink.socket_.get(), NETLINK_ROUTE, copy.get());
    if (answer < 0)
      return fail(
          {.kind = ErrorKind::setup,
           .code = "setup-links",
           .message = std::string("libnl refuses a netlink socket: ") + ::nl_geterror(answer)});
    (void)copy.release();
    return netlink;
  }

  /// Sends the message and waits for the kernel's answer.
  Status ask(Message message, const char* step) {
    // Not nl_send_sync: libnl maps several errnos to one code of its own.
    int error = 0;
    ::nl_socket_modify_err_cb(
        socket_.get(), NL_CB_CUSTOM,
        [](sockaddr_nl*, nlmsgerr* answer, void* place) {
          *static_cast<int*>(place) = -answer->error;
          return static_cast<int>(NL_STOP);
        },
        &error);
    if (::nl_send_auto(socket_.get(), message.get()) < 0)
      error = errno;
    else if (::nl_wait_for_ack(socket_.get()) < 0 && error == 0)
      error = EIO;
    if (error == 0) return {};
    return fail_errno(ErrorKind::setup, "setup-links",
                      std::string("set-up stage 'links' failed: cannot ") + step, error);
  }

 private:
  Netlink() : socket_(::nl_socket_alloc(), &::nl_socket_free) {}
  std::unique_ptr<nl_sock, decltype(&::nl_socket_free)> socket_;
};

Message message_of(int type, int flags) {
  return {::nlmsg_alloc_simple(type, NLM_F_REQUEST | NLM_F_ACK | flags), &::nlmsg_free};
}

template <class Header>
bool append(const Message& message, const Header& header) {
  return message != nullptr && ::nlmsg_append(message.get(), const_cast<Header*>(&header),
                                              sizeof header, NLMSG_ALIGNTO) == 0;
}

/// Allows segments of more than 64 KiB between the two ends ("BIG TCP"), which means fewer
/// segments. Kernels before 6.3 don't know the attribute and ignore it.
void take_big_segments(nl_msg* message) {
  constexpr int kGsoIpv4MaxSize = 63;  // IFLA_GSO_IPV4_MAX_SIZE, newer than our headers
  constexpr std::uint32_t kBytes = 192 * 1024;
  ::nla_put_u32(message, kGsoIpv4MaxSize, kBytes);
}

/// Creates both ends at once, with the sandbox's up (the other can't be up before its peer exists:
/// ENOTCONN). The peer is created in the gateway's namespace: moving it there would cost 30 ms. One
/// queue each, because there is one supervisor.
Result<Message> make_pair(int gateway_space) {
  Message message = message_of(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  const ifinfomsg here{
      .ifi_family = AF_UNSPEC, .ifi_index = kLink, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
  const ifinfomsg there{.ifi_family = AF_UNSPEC, .ifi_index = kLink};
  if (!append(message, here)) return out_of_memory();
  nl_msg* const m = message.get();
  ::nla_put_string(m, IFLA_IFNAME, "eth0");
  take_big_segments(m);
  ::nla_put_u32(m, IFLA_NUM_TX_QUEUES, 1);
  ::nla_put_u32(m, IFLA_NUM_RX_QUEUES, 1);
  nlattr* const information = ::nla_nest_start(m, IFLA_LINKINFO);
  ::nla_put_string(m, IFLA_INFO_KIND, "veth");
  nlattr* const data = ::nla_nest_start(m, IFLA_INFO_DATA);
  nlattr* const peer = ::nla_nest_start(m, VETH_INFO_PEER);
  if (!append(message, there)) return out_of_memory();
  ::nla_put_string(m, IFLA_IFNAME, "gw0");
  take_big_segments(m);
  ::nla_put_u32(m, IFLA_NET_NS_FD, static_cast<std::uint32_t>(gateway_space));
  ::nla_put_u32(m, IFLA_NUM_TX_QUEUES, 1);
  ::nla_put_u32(m, IFLA_NUM_RX_QUEUES, 1);
  ::nla_nest_end(m, peer);
  ::nla_nest_end(m, data);
  ::nla_nest_end(m, information);
  return message;
}

Message raise_link(int index) {
  Message message = message_of(RTM_NEWLINK, 0);
  const ifinfomsg header{
      .ifi_family = AF_UNSPEC, .ifi_index = index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
  return append(message, header) ? std::move(message) : Message(nullptr, &::nlmsg_free);
}

std::size_t size_of(int family) {
  return family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr);
}

/// With a network of `prefix` bits: sandbox and gateway reach each other directly.
Message add_address(int family, const char* address, unsigned prefix) {
  Message message = message_of(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
  ifaddrmsg header{.ifa_family = static_cast<std::uint8_t>(family),
                   .ifa_prefixlen = static_cast<std::uint8_t>(prefix),
                   .ifa_scope = RT_SCOPE_UNIVERSE,
                   .ifa_index = kLink};
  // The link has no other hosts: duplicate address detection would take a second.
  if (family == AF_INET6) header.ifa_flags = IFA_F_NODAD;
  if (!append(message, header)) return {nullptr, &::nlmsg_free};
  std::uint8_t bytes[sizeof(in6_addr)];
  ::inet_pton(family, address, bytes);
  ::nla_put(message.get(), IFA_LOCAL, static_cast<int>(size_of(family)), bytes);
  ::nla_put(message.get(), IFA_ADDRESS, static_cast<int>(size_of(family)), bytes);
  return message;
}

struct Route {
  int family;
  unsigned char table;
  unsigned char type;
  unsigned char scope;
  const char* to;  ///< null: the default route
  const char* gateway;
  int through;
};

/// Selects "reno", which every kernel has: packets between the two ends are never lost or
/// reordered. The host's choice for its networks may send by a timer (bbr), at a rate that it must
/// first measure.
void send_without_pacing(nl_msg* message) {
  nlattr* const metrics = ::nla_nest_start(message, RTA_METRICS);
  ::nla_put_string(message, RTAX_CC_ALGO, "reno");
  ::nla_nest_end(message, metrics);
}

Message add_route(const Route& route) {
  Message message = message_of(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
  const rtmsg header{
      .rtm_family = static_cast<std::uint8_t>(route.family),
      .rtm_dst_len = static_cast<std::uint8_t>(route.to == nullptr ? 0 : 8 * size_of(route.family)),
      .rtm_table = route.table,
      .rtm_protocol = RTPROT_STATIC,
      .rtm_scope = route.scope,
      .rtm_type = route.type};
  if (!append(message, header)) return {nullptr, &::nlmsg_free};
  std::uint8_t bytes[sizeof(in6_addr)];
  const int size = static_cast<int>(size_of(route.family));
  if (route.to != nullptr && ::inet_pton(route.family, route.to, bytes) == 1)
    ::nla_put(message.get(), RTA_DST, size, bytes);
  if (route.gateway != nullptr && ::inet_pton(route.family, route.gateway, bytes) == 1)
    ::nla_put(message.get(), RTA_GATEWAY, size, bytes);
  ::nla_put_u32(message.get(), RTA_OIF, static_cast<std::uint32_t>(route.through));
  if (route.type == RTN_UNICAST) send_without_pacing(message.get());
  return message;
}

Status ask(Netlink& netlink, Message message, const char* step) {
  if (message == nullptr) return out_of_memory();
  return netlink.ask(std::move(message), step);
}

/// Delivers every address except the sandbox's own to the gateway. Both routes are in table local,
/// where the longest prefix wins; otherwise the gateway would drop the sandbox's packets as
/// spoofed.
Status take_every_address(Netlink& gateway, int family, const char* sandbox) {
  SBX_TRY(
      ask(gateway,
          add_route({family, RT_TABLE_LOCAL, RTN_UNICAST, RT_SCOPE_LINK, sandbox, nullptr, kLink}),
          "route to the sandbox"));
  return ask(
      gateway,
      add_route({family, RT_TABLE_LOCAL, RTN_LOCAL, RT_SCOPE_HOST, nullptr, nullptr, kLoopback}),
      "make every address the gateway's");
}

Status configure(Netlink& sandbox, Netlink& gateway, int family) {
  const bool v4 = family == AF_INET;
  const unsigned prefix = v4 ? kLinkPrefix4 : kLinkPrefix6;
  const char* const here = v4 ? kGateway4 : kGateway6;
  const char* const there = v4 ? kSandbox4 : kSandbox6;
  SBX_TRY(ask(gateway, add_address(family, here, prefix), "give the gateway its address"));
  SBX_TRY(take_every_address(gateway, family, there));
  SBX_TRY(ask(sandbox, add_address(family, there, prefix), "give the sandbox its address"));
  return ask(
      sandbox,
      add_route({family, RT_TABLE_MAIN, RTN_UNICAST, RT_SCOPE_UNIVERSE, nullptr, here, kLink}),
      "route from the sandbox");
}

Status make_links(Netlink& sandbox, int gateway_space) {
  Status made = ask(sandbox, SBX_TRY(make_pair(gateway_space)), "make a pair of interfaces (veth)");
  if (!made && (made.error().errno_value == EOPNOTSUPP || made.error().errno_value == ENODEV))
    made.error().hint =
        "this kernel has no veth: load the module 'veth', or run with network.mode = \"none\" or "
        "\"host\"";
  return made;
}

}  // namespace

bool has_ipv6() {
  return ::access("/proc/thread-self/net/if_inet6", F_OK) == 0;
}

Result<bool> join(const LinkEnds& ends) {
  Netlink gateway = SBX_TRY(Netlink::adopt(ends.gateway_netlink));
  Netlink sandbox = SBX_TRY(Netlink::adopt(ends.sandbox_netlink));
  SBX_TRY(make_links(sandbox, ends.gateway_space.get()));
  SBX_TRY(ask(gateway, raise_link(kLink), "raise the gateway's interface"));
  SBX_TRY(ask(gateway, raise_link(kLoopback), "raise the gateway's loopback"));
  SBX_TRY(configure(sandbox, gateway, AF_INET));
  if (!has_ipv6()) return false;
  // IPv6 is disabled by net.ipv6.conf.*.disable_ipv6 on this machine, so there is none inside.
  return configure(sandbox, gateway, AF_INET6).has_value();
}

}  // namespace sbx::spawn
