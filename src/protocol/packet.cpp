#include "protocol/packet.hpp"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "base/fields.hpp"
#include "base/json_read.hpp"
#include "base/message.hpp"
#include "base/sys.hpp"

namespace sbx::protocol {
namespace {

/// -c CODE and a record with captured output fit; a client that sends more is not sbx.
constexpr std::size_t kLargestBody = std::size_t{256} << 20;
constexpr std::byte kVersion{2};
/// Most bodies fit; a file in memory costs eight system calls more.
constexpr std::size_t kInPacket = 4096;

Error gone() {
  return {.kind = ErrorKind::host, .code = "session-gone", .message = "the session has ended"};
}

Status not_sent() {
  return fail(sys::send_failure(gone()));
}

/// A record holds values of an interpreter, some levels down.
constexpr JsonLimits kLimits{.depth = 600, .values = 4'000'000};

Result<Json> from_bytes(std::string_view bytes) {
  Json body = read_cbor(bytes, kLimits);
  if (body.is_discarded() || !body.is_object()) return garbled();
  return body;
}

}  // namespace

std::unexpected<Error> garbled() {
  return fail(Error{.kind = ErrorKind::internal,
                    .code = "bad-message",
                    .message = "the session and this sbx do not understand each other",
                    .hint = kOtherVersion});
}

Status send(int socket, const Json& body, std::span<const int> fds) {
  std::string packet(1, static_cast<char>(kVersion));
  Json::to_cbor(body, packet);
  if (packet.size() <= kInPacket)
    return sys::send_message(socket, std::as_bytes(std::span(packet)), fds) ? Status() : not_sent();
  const UniqueFd file = SBX_TRY(sys::in_memory(std::string_view(packet).substr(1)));
  std::vector<int> all{file.get()};
  all.insert(all.end(), fds.begin(), fds.end());
  return sys::send_message(socket, std::span(&kVersion, 1), all) ? Status() : not_sent();
}

Result<Packet> receive(int socket) {
  std::array<char, kInPacket> bytes{};
  sys::Message message = sys::receive_message(socket, std::as_writable_bytes(std::span(bytes)));
  if (message.length == 0) return fail(gone());
  if (static_cast<std::byte>(bytes[0]) != kVersion) return garbled();
  if (message.length > 1)
    return Packet{
        .body = SBX_TRY(from_bytes(std::string_view(bytes.data(), message.length).substr(1))),
        .fds = std::move(message.fds)};
  // Only a file in memory has seals: to read another one, a pipe say, might take as long as its
  // owner likes.
  if (message.fds.empty() || ::fcntl(message.fds.front().get(), F_GET_SEALS) < 0) return garbled();
  const std::string text = SBX_TRY(sys::read_all(message.fds.front().get(), kLargestBody));
  Packet packet{.body = SBX_TRY(from_bytes(text)), .fds = std::move(message.fds)};
  packet.fds.erase(packet.fds.begin());
  return packet;
}

ErrorFields fields_from(const Error& error) {
  return {.kind = static_cast<std::uint8_t>(error.kind),
          .code = error.code,
          .message = error.text(),
          .hint = error.hint,
          .obstacle = obstacle_of(error),
          .side = error.side};
}

Error error_of(ErrorFields fields) {
  if (fields.kind > static_cast<std::uint8_t>(ErrorKind::not_executable) || fields.code.empty())
    return {.kind = ErrorKind::internal, .code = "bad-message", .message = "the session failed"};
  return {.kind = static_cast<ErrorKind>(fields.kind),
          .code = std::move(fields.code),
          .message = std::move(fields.message),
          .hint = std::move(fields.hint),
          .obstacle = fields.obstacle,
          .side = fields.side};
}

Error error_from(const Json& json) {
  return error_of(read_fields<ErrorFields>(json).value_or(ErrorFields{}));
}

Status send(int socket, const Error& error) {
  return send(socket, {{"error", write_fields(fields_from(error))}});
}

}  // namespace sbx::protocol
