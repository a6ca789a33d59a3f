#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fields.hpp"
#include "base/json.hpp"
#include "base/obstacle.hpp"
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

/// The fix where the two sides do not understand each other.
inline constexpr const char* kOtherVersion =
    "the session and this command are of different versions of sbx: use the version that started "
    "the session, or start another session";

/// Says that an answer lacks what it must have.
[[nodiscard]] std::unexpected<Error> garbled();

/// An error, as the other side needs it. A whole packet has it as "error".
struct ErrorFields {
  std::uint8_t kind = 0;
  std::string code;
  std::string message;
  std::string hint;
  Obstacle obstacle = Obstacle::none;
  Side side = Side::host;
};
SBX_FIELDS(ErrorFields, kind, code, message, hint, obstacle, side)
[[nodiscard]] ErrorFields fields_from(const Error& error);
[[nodiscard]] Error error_of(ErrorFields fields);
[[nodiscard]] Error error_from(const Json& json);
[[nodiscard]] Status send(int socket, const Error& error);

/// A struct as the body.
template <HasFields Said>
[[nodiscard]] Status send(int socket, const Said& said, std::span<const int> fds = {}) {
  return send(socket, write_fields(said), fds);
}

}  // namespace sbx::protocol
