#include "network/packet_info.hpp"

#include <cstring>

namespace sbx::network {

using policy::Address;
using policy::Family;

DatagramMessage::DatagramMessage(std::span<std::uint8_t> bytes)
    : body_{bytes.data(), bytes.size()} {
  message_.msg_name = &peer_;
  message_.msg_namelen = sizeof peer_;
  message_.msg_iov = &body_;
  message_.msg_iovlen = 1;
  message_.msg_control = control_.data();
  message_.msg_controllen = control_.size();
}

std::optional<Address> DatagramMessage::destination() {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message_); part != nullptr;
       part = CMSG_NXTHDR(&message_, part)) {
    if (part->cmsg_level == SOL_IP && part->cmsg_type == IP_PKTINFO)
      return Address::from_bytes(Family::v4,
                                 &reinterpret_cast<const in_pktinfo*>(CMSG_DATA(part))->ipi_addr);
    if (part->cmsg_level == SOL_IPV6 && part->cmsg_type == IPV6_PKTINFO)
      return Address::from_bytes(Family::v6,
                                 &reinterpret_cast<const in6_pktinfo*>(CMSG_DATA(part))->ipi6_addr);
  }
  return std::nullopt;
}

std::uint64_t DatagramMessage::came_at() {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message_); part != nullptr;
       part = CMSG_NXTHDR(&message_, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_TIMESTAMPNS) continue;
    timespec time{};
    std::memcpy(&time, CMSG_DATA(part), sizeof time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
  }
  return 0;
}

void DatagramMessage::address_to(const SocketAddress& to, const Address& from) {
  std::memcpy(&peer_, to.data(), to.size());
  message_.msg_namelen = to.size();
  cmsghdr* const part = CMSG_FIRSTHDR(&message_);
  if (from.family == Family::v4) {
    in_pktinfo information{};
    std::memcpy(&information.ipi_spec_dst, from.bytes.data(), sizeof information.ipi_spec_dst);
    part->cmsg_level = SOL_IP;
    part->cmsg_type = IP_PKTINFO;
    part->cmsg_len = CMSG_LEN(sizeof information);
    message_.msg_controllen = CMSG_SPACE(sizeof information);
    std::memcpy(CMSG_DATA(part), &information, sizeof information);
  } else {
    in6_pktinfo information{};
    std::memcpy(&information.ipi6_addr, from.bytes.data(), sizeof information.ipi6_addr);
    part->cmsg_level = SOL_IPV6;
    part->cmsg_type = IPV6_PKTINFO;
    part->cmsg_len = CMSG_LEN(sizeof information);
    message_.msg_controllen = CMSG_SPACE(sizeof information);
    std::memcpy(CMSG_DATA(part), &information, sizeof information);
  }
}

}  // namespace sbx::network
