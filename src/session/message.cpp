#include "session/message.hpp"

#include <array>
#include <cerrno>
#include <utility>

#include "base/message.hpp"
#include "base/sys.hpp"

namespace sbx::session {
namespace {

/// -c CODE and a record with captured output fit; a client that sends more is no sbx.
constexpr std::size_t kLargest = std::size_t{256} << 20;
constexpr std::byte kVersion{1};

std::unexpected<Error> gone() {
  return fail(
      Error{.kind = ErrorKind::host, .code = "session-gone", .message = "the session has ended"});
}

std::unexpected<Error> garbled() {
  return fail(Error{.kind = ErrorKind::internal,
                    .code = "bad-message",
                    .message = "the session speaks another language than this sbx",
                    .hint = "it may have been started by another version: stop it with that one"});
}

}  // namespace

Result<UniqueFd> in_file(const Json& body) {
  std::string bytes;
  Json::to_cbor(body, bytes);
  return sys::in_memory(bytes);
}

Result<Json> from_file(int file) {
  const std::string bytes = SBX_TRY(sys::read_all(file, kLargest));
  Json body = Json::from_cbor(bytes, true, false);
  if (body.is_discarded() || !body.is_object()) return garbled();
  return body;
}

Status send(int socket, const Json& body, std::span<const int> fds) {
  const UniqueFd file = SBX_TRY(in_file(body));
  std::vector<int> all{file.get()};
  all.insert(all.end(), fds.begin(), fds.end());
  if (sys::send_message(socket, std::span(&kVersion, 1), all)) return {};
  return gone();
}

Result<Packet> receive(int socket) {
  std::byte version{};
  sys::Message message = sys::receive_message(socket, std::span(&version, 1));
  if (message.length == 0) return gone();
  if (version != kVersion || message.fds.empty()) return garbled();
  Packet packet{.body = SBX_TRY(from_file(message.fds.front().get())),
                .fds = std::move(message.fds)};
  packet.fds.erase(packet.fds.begin());
  return packet;
}

Json error_json(const Error& error) {
  Json json{{"kind", static_cast<int>(error.kind)},
            {"code", error.code},
            {"message", error.text()},
            {"hint", error.hint}};
  return json;
}

Error error_from(const Json& json) {
  Error error{.kind = ErrorKind::internal, .code = "bad-message", .message = "the session failed"};
  if (!json.is_object()) return error;
  const int kind = json.value("kind", static_cast<int>(ErrorKind::internal));
  if (kind >= 0 && kind <= static_cast<int>(ErrorKind::not_executable))
    error.kind = static_cast<ErrorKind>(kind);
  error.code = json.value("code", error.code);
  error.message = json.value("message", error.message);
  error.hint = json.value("hint", "");
  return error;
}

}  // namespace sbx::session
