#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "policy/addresses.hpp"

namespace sbx::network {

/// An address and a port, as sockets take it.
class SocketAddress {
 public:
  SocketAddress() = default;
  SocketAddress(const policy::Address& address, std::uint16_t port);
  /// Every address of the family.
  static SocketAddress any(policy::Family family, std::uint16_t port);
  /// What the kernel filled in; of another family than IP: nothing.
  static SocketAddress of(const sockaddr_storage& storage);

  [[nodiscard]] const sockaddr* data() const {
    return reinterpret_cast<const sockaddr*>(&storage_);
  }
  [[nodiscard]] socklen_t size() const;
  [[nodiscard]] policy::Address address() const;
  [[nodiscard]] std::uint16_t port() const;

 private:
  sockaddr_storage storage_{};
};

/// AF_INET or AF_INET6.
[[nodiscard]] constexpr int domain_of(policy::Family family) {
  return family == policy::Family::v4 ? AF_INET : AF_INET6;
}
/// The end of a connected or bound socket on this side.
[[nodiscard]] SocketAddress local_address(int socket);
/// "10.1.2.3:80", "[2001:db8::1]:80".
[[nodiscard]] std::string with_port(const policy::Address& address, std::uint16_t port);

/// setsockopt(2) of an int; false when the kernel does not know it.
bool set_option(int socket, int level, int option, int value);
/// Closing it will reset the connection, so that the other side does not take its end for a
/// complete answer.
void reset_on_close(int socket);

}  // namespace sbx::network
