#pragma once

#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "network/network_namespace.hpp"

namespace sbx::network {

/// Unbound sockets in one network namespace. Those made with the sandbox come first; when they are
/// used up, more are made.
class SocketPool {
 public:
  explicit SocketPool(NetworkNamespace space) : space_(std::move(space)) {}

  void add(int domain, int type, UniqueFd socket);
  /// A fresh socket. Errors: host (the limit of open files).
  [[nodiscard]] Result<UniqueFd> take(int domain, int type);

  [[nodiscard]] const NetworkNamespace& space() const { return space_; }

 private:
  struct Kind {
    int domain;
    int type;
    std::vector<UniqueFd> sockets;
    std::size_t refill;  ///< how many are made next
  };
  Kind& kind(int domain, int type);

  NetworkNamespace space_;
  std::vector<Kind> kinds_;
};

}  // namespace sbx::network
