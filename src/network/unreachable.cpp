#include "network/unreachable.hpp"

#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>

#include <cstring>
#include <vector>

#include "network/packet_info.hpp"

namespace sbx::network {
namespace {

using policy::Address;
using policy::Family;

constexpr std::uint8_t kHops = 64;

template <class Header>
void append(std::vector<std::uint8_t>& bytes, const Header& header) {
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(&header);
  bytes.insert(bytes.end(), begin, begin + sizeof header);
}

/// RFC 1071.
std::uint16_t checksum(std::span<const std::uint8_t> bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2)
    sum += static_cast<std::uint32_t>(bytes[i] << 8 | bytes[i + 1]);
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

void put(void* place, const Address& address) {
  std::memcpy(place, address.bytes.data(), address.bits() / 8);
}

udphdr udp_header(const SocketAddress& client, const SocketAddress& to) {
  udphdr header{};
  header.uh_sport = htons(client.port());
  header.uh_dport = htons(to.port());
  header.uh_ulen = htons(sizeof header);
  return header;
}

/// The message and the headers of the datagram that it is about: they are how the program's kernel
/// finds the socket.
std::vector<std::uint8_t> message4(const SocketAddress& client, const SocketAddress& to) {
  std::vector<std::uint8_t> bytes;
  append(bytes, icmphdr{.type = ICMP_DEST_UNREACH, .code = ICMP_PORT_UNREACH});
  iphdr about{};
  about.version = 4;
  about.ihl = sizeof about / 4;
  about.tot_len = htons(sizeof about + sizeof(udphdr));
  about.ttl = kHops;
  about.protocol = IPPROTO_UDP;
  put(&about.saddr, client.address());
  put(&about.daddr, to.address());
  append(bytes, about);
  append(bytes, udp_header(client, to));
  const std::uint16_t sum = checksum(bytes);
  bytes[2] = static_cast<std::uint8_t>(sum >> 8);
  bytes[3] = static_cast<std::uint8_t>(sum & 0xFF);
  return bytes;
}

/// Its checksum is the kernel's.
std::vector<std::uint8_t> message6(const SocketAddress& client, const SocketAddress& to) {
  std::vector<std::uint8_t> bytes;
  icmp6_hdr head{};
  head.icmp6_type = ICMP6_DST_UNREACH;
  head.icmp6_code = ICMP6_DST_UNREACH_NOPORT;
  append(bytes, head);
  ip6_hdr about{};
  about.ip6_flow = htonl(6U << 28);
  about.ip6_plen = htons(sizeof(udphdr));
  about.ip6_nxt = IPPROTO_UDP;
  about.ip6_hlim = kHops;
  put(&about.ip6_src, client.address());
  put(&about.ip6_dst, to.address());
  append(bytes, about);
  append(bytes, udp_header(client, to));
  return bytes;
}

}  // namespace

int Unreachable::socket_for(Family family) {
  auto& socket = sockets_[family == Family::v4 ? 0 : 1];
  if (!socket) {
    auto made =
        space_.make({.domain = domain_of(family),
                     .type = SOCK_RAW,
                     .protocol = family == Family::v4 ? int{IPPROTO_ICMP} : int{IPPROTO_ICMPV6},
                     .in_gateway = false,
                     .loopback_port = 0},
                    1);
    socket.emplace(made ? std::move(made->front()) : UniqueFd());
    // What comes is not read. In IPv6 every address is not "local" enough to send from, see
    // listeners.cpp.
    (void)set_option(socket->get(), SOL_SOCKET, SO_RCVBUF, 0);
    (void)set_option(socket->get(), SOL_IPV6, IPV6_FREEBIND, 1);
  }
  return socket->get();
}

void Unreachable::tell(const SocketAddress& client, const SocketAddress& to) {
  const Family family = to.address().family;
  const int socket = socket_for(family);
  if (socket < 0) return;
  std::vector<std::uint8_t> bytes =
      family == Family::v4 ? message4(client, to) : message6(client, to);
  DatagramMessage message(bytes);
  // A raw socket has no port.
  message.address_to(SocketAddress(client.address(), 0), to.address());
  (void)::sendmsg(socket, message.header(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace sbx::network
