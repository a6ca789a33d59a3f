#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/event_loop.hpp"
#include "base/socket_request.hpp"
#include "base/unique_fd.hpp"
#include "network/socket_address.hpp"
#include "policy/network_rules.hpp"

namespace sbx::network {

/// Sees every connection attempt and datagram that arrives in the gateway, those that the kernel
/// refuses for want of a listener too. Raw sockets see them because every address is the gateway's
/// own; a packet socket would cost 10 ms to close. Under a flood what is not read is counted only.
class Attempts {
 public:
  struct Target {
    policy::Transport transport{};
    policy::Address address;
    std::uint16_t port = 0;
  };
  struct Packet {
    Target to;
    SocketAddress from;
    /// Holds the datagram, where whole ones are wanted.
    std::span<const std::uint8_t> data;
    std::uint64_t came_at = 0;  ///< the same; nanoseconds of CLOCK_REALTIME
  };
  using Seen = std::function<void(const Packet&)>;
  enum class Datagrams : std::uint8_t { headers, whole };

  static std::vector<SocketRequest> requests(bool ipv6);

  Attempts(EventLoop& loop, Seen seen) : loop_(loop), seen_(std::move(seen)) {}
  Attempts(const Attempts&) = delete;
  Attempts& operator=(const Attempts&) = delete;
  ~Attempts();

  /// A raw socket of requests(). Errors: setup (its filter), internal.
  [[nodiscard]] static Status prepare(int socket, Datagrams datagrams);
  [[nodiscard]] Status watch(UniqueFd socket);
  /// Reads what came until now, within bounds.
  void drain();
  /// Those that were not read because there were too many.
  [[nodiscard]] std::uint64_t unread() const;

 private:
  struct Source {
    UniqueFd socket;
    policy::Transport transport;
    policy::Family family;
  };
  void read(const Source& source, int most);
  bool read_one(const Source& source);
  void pause();

  EventLoop& loop_;
  Seen seen_;
  std::vector<Source> sources_;
  std::uint64_t window_start_ = 0;
  int seen_in_window_ = 0;
  EventLoop::TimerId resume_ = EventLoop::kNoTimer;
};

}  // namespace sbx::network
