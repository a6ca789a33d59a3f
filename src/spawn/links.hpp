#pragma once

#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// The pair of interfaces between the sandbox's network namespace and the gateway's.
namespace sbx::spawn {

/// netlink(7) sockets and a namespace, all opened inside by PID 1. Configuring them from outside
/// needs no privilege but that of the user who made the sandbox's user namespace.
struct LinkEnds {
  UniqueFd gateway_netlink;
  UniqueFd gateway_space;
  UniqueFd sandbox_netlink;
};

/// Whether this machine has IPv6 at all.
[[nodiscard]] bool has_ipv6();

/// Joins the two: every address that the sandbox dials is the gateway's own. Gives whether IPv6
/// works too. Errors: setup (which step; the kernel has no veth).
[[nodiscard]] Result<bool> join(const LinkEnds& ends);

}  // namespace sbx::spawn
