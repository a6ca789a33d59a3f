#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace sbx::sys {

struct Message {
  std::size_t length = 0;  ///< of the body; 0 at end of file and where nothing could be received
  std::vector<UniqueFd> fds;
};

/// Waits for one message of a packet socket: into `body`, with the descriptors that came with it.
/// What a peer sent before it left is received too.
[[nodiscard]] Message receive_message(int socket, std::span<std::byte> body);

/// The most descriptors that one message carries here.
inline constexpr std::size_t kMostDescriptors = 32;
/// Sends one packet with descriptors; false with errno (EPIPE: the peer is gone; ETOOMANYREFS: too
/// many descriptors of this user are in flight, unix(7)).
[[nodiscard]] bool send_message(int socket, std::span<const std::byte> body,
                                std::span<const int> descriptors);

/// What the other end has not received yet, as the kernel counts it: with its own part of each
/// message.
[[nodiscard]] std::size_t unread_bytes(int socket);

/// Of send_message(), by errno: `gone` where the peer is gone, else the cause.
[[nodiscard]] Error send_failure(Error gone);
/// Of ETOOMANYREFS, unix(7).
[[nodiscard]] Error descriptors_in_flight();

}  // namespace sbx::sys
