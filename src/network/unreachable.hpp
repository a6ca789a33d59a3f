#pragma once

#include <array>
#include <optional>

#include "network/network_namespace.hpp"
#include "network/socket_address.hpp"

namespace sbx::network {

/// Reports to a program that a datagram was not delivered, as the destination's own host would:
/// ICMP "port unreachable", which its socket reports as ECONNREFUSED.
class Unreachable {
 public:
  /// `space` is the gateway's; borrowed.
  explicit Unreachable(const NetworkNamespace& space) : space_(space) {}

  /// About a datagram from `client` to `to`. If the report fails, the program waits as for any lost
  /// datagram.
  void tell(const SocketAddress& client, const SocketAddress& to);

 private:
  int socket_for(policy::Family family);

  const NetworkNamespace& space_;
  std::array<std::optional<UniqueFd>, 2> sockets_;  ///< by family, made when they are needed
};

}  // namespace sbx::network
