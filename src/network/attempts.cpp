#include "network/attempts.hpp"

#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <memory>

#include "base/sys.hpp"
#include "network/packet_info.hpp"

namespace sbx::network {
namespace {

using policy::Address;
using policy::Family;
using policy::Transport;

constexpr std::uint64_t kWindowMicroseconds = 10'000;
constexpr int kPerWindow = 200;
constexpr int kPacketsPerTurn = 64;
constexpr int kMostQueued = 4096;    ///< more than a queue of the kernel's default size holds
constexpr std::uint32_t kKept = 64;  ///< bytes of a packet: the headers
constexpr std::uint8_t kSynOrAck = 0x12;
constexpr std::uint8_t kSyn = 0x02;
constexpr std::uint8_t kFlags = 13;  ///< place in the TCP header
constexpr std::size_t kLargestPacket = 65'535;
constexpr std::size_t kDestinationPort = 2;
constexpr std::size_t kSource4 = 12;  ///< place in the IPv4 header
constexpr std::size_t kDestination4 = 16;
constexpr std::size_t kUdpHeader = 8;

struct Kind {
  int domain = 0;
  int protocol = 0;
};

Kind kind_of(int socket) {
  Kind kind;
  socklen_t size = sizeof kind.domain;
  ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &kind.domain, &size);
  size = sizeof kind.protocol;
  ::getsockopt(socket, SOL_SOCKET, SO_PROTOCOL, &kind.protocol, &size);
  return kind;
}

Status attach_filter(int socket, std::span<sock_filter> filter) {
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0) return {};
  return fail_errno(ErrorKind::setup, "setup-gateway", "cannot filter what the gateway sees");
}

/// A SYN without an ACK; IPv4 raw sockets see the IP header first, IPv6 ones don't.
Status keep_first_packets(int socket, int domain) {
  std::array<sock_filter, 6> first4 = {
      {BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0), BPF_STMT(BPF_LD | BPF_B | BPF_IND, kFlags),
       BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kSynOrAck),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kSyn, 1, 0), BPF_STMT(BPF_RET | BPF_K, 0),
       BPF_STMT(BPF_RET | BPF_K, kKept)}};
  std::array<sock_filter, 5> first6 = {
      {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kFlags), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kSynOrAck),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kSyn, 1, 0), BPF_STMT(BPF_RET | BPF_K, 0),
       BPF_STMT(BPF_RET | BPF_K, kKept)}};
  return domain == AF_INET ? attach_filter(socket, first4) : attach_filter(socket, first6);
}

Status keep_datagrams(int socket, std::uint32_t bytes) {
  std::array<sock_filter, 1> all = {{BPF_STMT(BPF_RET | BPF_K, bytes)}};
  return attach_filter(socket, all);
}

std::uint16_t port_at(std::span<const std::uint8_t> bytes, std::size_t place) {
  return static_cast<std::uint16_t>(bytes[place] << 8 | bytes[place + 1]);
}

}  // namespace

std::vector<SocketRequest> Attempts::requests(bool ipv6) {
  std::vector<SocketRequest> requests;
  for (const int domain : {AF_INET, AF_INET6})
    for (const int protocol : {IPPROTO_TCP, IPPROTO_UDP})
      if (domain == AF_INET || ipv6)
        requests.push_back({.domain = domain,
                            .type = SOCK_RAW,
                            .protocol = protocol,
                            .in_gateway = true,
                            .loopback_port = 0});
  return requests;
}

Attempts::~Attempts() {
  loop_.cancel(resume_);
  for (const Source& source : sources_) loop_.forget(source.socket.get());
}

Status Attempts::prepare(int socket, Datagrams datagrams) {
  const Kind kind = kind_of(socket);
  if (kind.domain == AF_INET6) (void)set_option(socket, SOL_IPV6, IPV6_RECVPKTINFO, 1);
  if (kind.protocol == IPPROTO_TCP) return keep_first_packets(socket, kind.domain);
  if (datagrams == Datagrams::headers) return keep_datagrams(socket, kKept);
  (void)set_option(socket, SOL_SOCKET, SO_TIMESTAMPNS, 1);
  return keep_datagrams(socket, kLargestPacket);
}

Status Attempts::watch(UniqueFd socket) {
  const Kind kind = kind_of(socket.get());
  const int fd = socket.get();
  const std::size_t index = sources_.size();
  sources_.push_back({.socket = std::move(socket),
                      .transport = kind.protocol == IPPROTO_TCP ? Transport::tcp : Transport::udp,
                      .family = kind.domain == AF_INET ? Family::v4 : Family::v6});
  return loop_.watch(fd, EPOLLIN,
                     [this, index](std::uint32_t) { read(sources_[index], kPacketsPerTurn); });
}

void Attempts::drain() {
  for (const Source& source : sources_)
    for (int i = 0; i < kMostQueued && read_one(source);) ++i;
}

void Attempts::read(const Source& source, int most) {
  const std::uint64_t now = sys::now_microseconds();
  if (now - window_start_ >= kWindowMicroseconds) {
    window_start_ = now;
    seen_in_window_ = 0;
  }
  for (int i = 0; i < most; ++i) {
    if (seen_in_window_ >= kPerWindow) return pause();
    if (!read_one(source)) return;
    ++seen_in_window_;
  }
}

/// Until the window is over nothing is read: the kernel counts what its queue can't hold.
void Attempts::pause() {
  if (resume_ != EventLoop::kNoTimer) return;
  for (const Source& source : sources_) loop_.set_events(source.socket.get(), 0);
  resume_ = loop_.at(window_start_ + kWindowMicroseconds, [this] {
    resume_ = EventLoop::kNoTimer;
    for (const Source& source : sources_) loop_.set_events(source.socket.get(), EPOLLIN);
  });
}

/// False: there is none.
bool Attempts::read_one(const Source& source) {
  const auto room = std::make_unique_for_overwrite<std::uint8_t[]>(kLargestPacket);
  const std::span bytes(room.get(), kLargestPacket);
  DatagramMessage message(bytes);
  const ssize_t got = ::recvmsg(source.socket.get(), message.header(), MSG_DONTWAIT);
  if (got < 0) return errno == EINTR;
  const auto packet = std::span<const std::uint8_t>(bytes).first(static_cast<std::size_t>(got));
  Packet seen{.to = {.transport = source.transport}, .came_at = message.came_at()};
  policy::Address from;
  std::size_t header = 0;  // an IPv6 raw socket gives what follows it
  if (source.family == Family::v4) {
    if (packet.size() < sizeof(std::uint32_t) * 5) return true;
    header = static_cast<std::size_t>(packet[0] & 0x0F) * 4;
    from = Address::from_bytes(Family::v4, packet.data() + kSource4);
    seen.to.address = Address::from_bytes(Family::v4, packet.data() + kDestination4);
  } else {
    const auto to = message.destination();
    if (!to) return true;
    from = message.peer().address();
    seen.to.address = *to;
  }
  if (packet.size() < header + kUdpHeader) return true;
  seen.to.port = port_at(packet, header + kDestinationPort);
  seen.from = SocketAddress(from, port_at(packet, header));
  seen.data = packet.subspan(header + kUdpHeader);
  seen_(seen);
  return true;
}

std::uint64_t Attempts::unread() const {
  std::uint64_t unread = 0;
  for (const Source& source : sources_) {
    std::array<std::uint32_t, SK_MEMINFO_VARS> facts{};
    socklen_t size = sizeof facts;
    if (::getsockopt(source.socket.get(), SOL_SOCKET, SO_MEMINFO, facts.data(), &size) == 0)
      unread += facts[SK_MEMINFO_DROPS];
  }
  return unread;
}

}  // namespace sbx::network
