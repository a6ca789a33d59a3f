#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "network/socket_address.hpp"

namespace sbx::network {

/// One datagram for recvmsg(2) and sendmsg(2) on a socket that answers for many addresses: with
/// where it was sent to, or where it is to come from. IP_PKTINFO or IPV6_RECVPKTINFO must be on.
class DatagramMessage {
 public:
  explicit DatagramMessage(std::span<std::uint8_t> bytes);
  DatagramMessage(const DatagramMessage&) = delete;
  DatagramMessage& operator=(const DatagramMessage&) = delete;

  [[nodiscard]] msghdr* header() { return &message_; }
  /// A received datagram has a sender, and an address that it was sent to.
  [[nodiscard]] SocketAddress peer() const { return SocketAddress::of(peer_); }
  [[nodiscard]] std::optional<policy::Address> destination();
  /// Received with SO_TIMESTAMPNS on: when, in nanoseconds of CLOCK_REALTIME; else 0.
  [[nodiscard]] std::uint64_t came_at();
  /// To send: `to` gets it, from `from`.
  void address_to(const SocketAddress& to, const policy::Address& from);

 private:
  sockaddr_storage peer_{};
  iovec body_{};
  msghdr message_{};
  alignas(cmsghdr)
      std::array<char, CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(timespec))> control_{};
};

}  // namespace sbx::network
