#pragma once

#include <functional>
#include <vector>

#include "base/result.hpp"
#include "base/socket_request.hpp"
#include "base/unique_fd.hpp"

/// What a run's network needs when its sandbox starts, and what the supervisor gets from it.
namespace sbx::spawn {

/// The supervisor's ends. All traffic passes through these sockets.
struct NetworkEnds {
  UniqueFd gateway_space;         ///< the gateway's network namespace; invalid without a gateway
  UniqueFd space;                 ///< the sandbox's network namespace, if requested
  std::vector<UniqueFd> sockets;  ///< as requested
  bool has_ipv6 = false;          ///< with a gateway: it also handles IPv6
};

struct NetworkRequest {
  bool gateway = false;  ///< connect the sandbox to a gateway namespace
  bool space = false;    ///< hand over the sandbox's network namespace
  /// Those in the gateway first; at most kMostRequests.
  std::vector<SocketRequest> sockets;
  /// Receives the ends. With a gateway it is called before the command starts, so the command finds
  /// every listener from the beginning. Its errors fail the run.
  std::function<Status(NetworkEnds)> take;
};

}  // namespace sbx::spawn
