#pragma once

#include <cstdint>

namespace sbx {

/// A socket that PID 1 makes in a network namespace of the run and passes to the supervisor, which
/// binds and uses it from outside. Flat: read by the child between clone and exec.
struct SocketRequest {
  int domain = 0;
  int type = 0;  ///< SOCK_NONBLOCK and SOCK_CLOEXEC are added
  int protocol = 0;
  bool in_gateway = false;  ///< in the gateway's namespace; else in the sandbox's
  /// When not 0: bound to this port of 127.0.0.1, and listening if it is a stream.
  std::uint16_t loopback_port = 0;
};

/// Most sockets of one run's start: they travel in one message of at most 253 descriptors, unix(7).
inline constexpr int kMostRequests = 240;

}  // namespace sbx
