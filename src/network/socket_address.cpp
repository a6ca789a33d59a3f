#include "network/socket_address.hpp"

#include <arpa/inet.h>

#include <cstring>

namespace sbx::network {

using policy::Address;
using policy::Family;

SocketAddress::SocketAddress(const Address& address, std::uint16_t port) {
  if (address.family == Family::v4) {
    auto& in = reinterpret_cast<sockaddr_in&>(storage_);
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    std::memcpy(&in.sin_addr, address.bytes.data(), sizeof in.sin_addr);
  } else {
    auto& in = reinterpret_cast<sockaddr_in6&>(storage_);
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    std::memcpy(&in.sin6_addr, address.bytes.data(), sizeof in.sin6_addr);
  }
}

SocketAddress SocketAddress::any(Family family, std::uint16_t port) {
  return {Address{.family = family}, port};
}

SocketAddress SocketAddress::of(const sockaddr_storage& storage) {
  SocketAddress address;
  address.storage_ = storage;
  return address;
}

socklen_t SocketAddress::size() const {
  return storage_.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

Address SocketAddress::address() const {
  if (storage_.ss_family == AF_INET6)
    return Address::from_bytes(Family::v6,
                               &reinterpret_cast<const sockaddr_in6&>(storage_).sin6_addr);
  return Address::from_bytes(Family::v4, &reinterpret_cast<const sockaddr_in&>(storage_).sin_addr);
}

std::uint16_t SocketAddress::port() const {
  // Both families have the port at the same place.
  return ntohs(reinterpret_cast<const sockaddr_in&>(storage_).sin_port);
}

SocketAddress local_address(int socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &size) != 0) storage = {};
  return SocketAddress::of(storage);
}

std::string with_port(const Address& address, std::uint16_t port) {
  const std::string text = address.text();
  return (address.family == Family::v6 ? "[" + text + "]" : text) + ":" + std::to_string(port);
}

bool set_option(int socket, int level, int option, int value) {
  return ::setsockopt(socket, level, option, &value, sizeof value) == 0;
}

void reset_on_close(int socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace sbx::network
