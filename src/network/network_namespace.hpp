#pragma once

#include <vector>

#include "base/result.hpp"
#include "base/socket_request.hpp"
#include "base/unique_fd.hpp"

namespace sbx::network {

/// A network namespace of a run, from outside. A socket stays in the namespace in which it was
/// made, whichever process holds it.
class NetworkNamespace {
 public:
  /// `uid` and `gid` own the sockets, in the namespace's user namespace: listeners of one port must
  /// have one owner, socket(7) "SO_REUSEPORT".
  explicit NetworkNamespace(UniqueFd space, unsigned uid, unsigned gid)
      : space_(std::move(space)), uid_(uid), gid_(gid) {}

  /// Makes `count` sockets by a short-lived process that joins the namespace. Non-blocking and
  /// close-on-exec. As many as the limit of open files leaves; errors: host (none at all).
  [[nodiscard]] Result<std::vector<UniqueFd>> make(const SocketRequest& request,
                                                   std::size_t count) const;

 private:
  UniqueFd space_;
  unsigned uid_;
  unsigned gid_;
};

}  // namespace sbx::network
