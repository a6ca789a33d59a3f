#pragma once

#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// The pair of interfaces between the sandbox's network namespace and the gateway's.
namespace sbx::spawn {

/// netlink(7) sockets and a namespace, all opened inside by PID 1. Using them from outside needs
/// only the privileges of the user who created the sandbox's user namespace.
struct LinkEnds {
  UniqueFd gateway_netlink;
  UniqueFd gateway_space;
  UniqueFd sandbox_netlink;
};

/// True if this machine has IPv6.
[[nodiscard]] bool has_ipv6();

/// Connects the two: the gateway owns every address that the sandbox dials. Returns whether IPv6
/// works too. Errors: setup (the failed step; the kernel lacks veth).
[[nodiscard]] Result<bool> join(const LinkEnds& ends);

}  // namespace sbx::spawn
