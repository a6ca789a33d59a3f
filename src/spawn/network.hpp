#pragma once

#include <functional>
#include <vector>

#include "base/result.hpp"
#include "base/socket_wish.hpp"
#include "base/unique_fd.hpp"

/// What a run's network needs from the start of its sandbox, and what the supervisor then holds.
namespace sbx::spawn {

/// The supervisor's ends. Everything that goes in or out passes these sockets.
struct NetworkEnds {
  UniqueFd gateway_space;         ///< the gateway's network namespace; invalid without a gateway
  UniqueFd space;                 ///< the sandbox's network namespace, when it was asked for
  std::vector<UniqueFd> sockets;  ///< as wished for
  bool has_ipv6 = false;          ///< with a gateway: IPv6 leads to it too
};

struct NetworkRequest {
  bool gateway = false;  ///< join the sandbox to a gateway namespace
  bool space = false;    ///< hand over the sandbox's network namespace
  /// Those in the gateway first; at most kMostWishes.
  std::vector<SocketWish> sockets;
  /// Takes the ends. With a gateway it is called before the command starts, which waits for it: what
  /// listens afterwards was there from the start. Its errors fail the run.
  std::function<Status(NetworkEnds)> take;
};

}  // namespace sbx::spawn
