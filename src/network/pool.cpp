#include "network/pool.hpp"

#include <algorithm>

namespace sbx::network {
namespace {

constexpr std::size_t kFirstRefill = 16;
constexpr std::size_t kLargestRefill = 64;  ///< a process costs more than its sockets

}  // namespace

SocketPool::Kind& SocketPool::kind(int domain, int type) {
  const auto found = std::ranges::find_if(
      kinds_, [&](const Kind& one) { return one.domain == domain && one.type == type; });
  if (found != kinds_.end()) return *found;
  kinds_.push_back({.domain = domain, .type = type, .sockets = {}, .refill = kFirstRefill});
  return kinds_.back();
}

void SocketPool::add(int domain, int type, UniqueFd socket) {
  kind(domain, type).sockets.push_back(std::move(socket));
}

Result<UniqueFd> SocketPool::take(int domain, int type) {
  Kind& kind_of = kind(domain, type);
  std::vector<UniqueFd>& sockets = kind_of.sockets;
  if (sockets.empty()) {
    sockets = SBX_TRY(space_.make(
        {.domain = domain, .type = type, .protocol = 0, .in_gateway = false, .loopback_port = 0},
        kind_of.refill));
    kind_of.refill = std::min(kind_of.refill * 2, kLargestRefill);
  }
  UniqueFd socket = std::move(sockets.back());
  sockets.pop_back();
  return socket;
}

}  // namespace sbx::network
