#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// What a session and its clients say to each other: one packet each with descriptors; a large body
/// is in a file in memory.
namespace sbx::protocol {

struct Packet {
  Json body;
  std::vector<UniqueFd> fds;
};

/// Errors: host "session-gone".
[[nodiscard]] Status send(int socket, const Json& body, std::span<const int> fds = {});
/// Waits for the next packet. Errors: host "session-gone" (end of file), internal "bad-message".
[[nodiscard]] Result<Packet> receive(int socket);

/// Says that an answer lacks what it must have.
[[nodiscard]] std::unexpected<Error> garbled();

/// An error for the other side, and back.
[[nodiscard]] Json error_json(const Error& error);
[[nodiscard]] Error error_from(const Json& json);

}  // namespace sbx::protocol
