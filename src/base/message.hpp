#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/unique_fd.hpp"

namespace sbx::sys {

struct Message {
  std::size_t length = 0;  ///< of the body; 0 at end of file and where nothing could be received
  std::vector<UniqueFd> fds;
};

/// Waits for one message of a packet socket: into `body`, with the descriptors that came with it.
[[nodiscard]] Message receive_message(int socket, std::span<std::byte> body);

}  // namespace sbx::sys
