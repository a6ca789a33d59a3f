#include "network/sni.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "policy/network_names.hpp"
#include "policy/network_rules.hpp"

namespace sbx::network {
namespace {

using State = ClientHello::State;
using View = std::span<const std::uint8_t>;

constexpr std::uint8_t kHandshake = 22;
constexpr std::uint8_t kMajorVersion = 3;
constexpr std::uint8_t kClientHello = 1;
constexpr std::size_t kLargestRecord = 16384;  // RFC 8446, 5.1
constexpr std::size_t kRecordHeader = 5;
constexpr std::size_t kHandshakeHeader = 4;
constexpr std::uint16_t kServerName = 0;
constexpr std::uint16_t kEncryptedHello = 0xfe0d;  // RFC 9849

/// Cuts pieces from the front; a piece that isn't there makes it fail from then on.
class Reader {
 public:
  explicit Reader(View bytes) : rest_(bytes) {}

  [[nodiscard]] bool failed() const { return failed_; }
  /// Everything was read, and it was there.
  [[nodiscard]] bool done() const { return !failed_ && rest_.empty(); }
  [[nodiscard]] bool empty() const { return rest_.empty(); }
  View take(std::size_t count) {
    if (failed_ || count > rest_.size()) {
      failed_ = true;
      rest_ = {};
      return {};
    }
    const View taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  std::size_t number(std::size_t bytes) {
    std::size_t value = 0;
    for (const std::uint8_t byte : take(bytes)) value = value << 8 | byte;
    return value;
  }
  /// A piece that follows its own length.
  View counted(std::size_t length_bytes) { return take(number(length_bytes)); }

 private:
  View rest_;
  bool failed_ = false;
};

/// The name in a server_name extension; nothing when it holds none or more than one.
std::optional<std::string> read_server_name(View extension) {
  Reader reader(extension);
  Reader list(reader.counted(2));
  if (!reader.done()) return std::nullopt;
  const bool is_host_name = list.number(1) == 0;
  const View name = list.counted(2);
  if (!list.done() || !is_host_name || name.empty()) return std::nullopt;
  // Not IDNA: on the wire a name is ASCII (RFC 6066, 3).
  if (!std::ranges::all_of(name, [](std::uint8_t byte) { return byte < 0x80; }))
    return std::nullopt;
  auto canonical = policy::canonical_name(std::string(name.begin(), name.end()));
  if (!canonical) return std::nullopt;
  return std::move(*canonical);
}

ClientHello read_extensions(View extensions) {
  ClientHello hello{.state = State::no_name};
  Reader reader(extensions);
  bool seen = false;
  while (!reader.empty() && !reader.failed()) {
    const std::size_t type = reader.number(2);
    const View body = reader.counted(2);
    if (reader.failed()) break;
    if (type == kEncryptedHello) hello.encrypted = true;
    if (type != kServerName) continue;
    auto name = seen ? std::nullopt : read_server_name(body);
    seen = true;
    hello.state = name ? State::named : State::bad_name;
    hello.name = std::move(name).value_or("");
  }
  return reader.failed() ? ClientHello{.state = State::not_tls} : hello;
}

ClientHello read_body(View body) {
  constexpr std::size_t kRandom = 32;
  constexpr std::size_t kLongestSession = 32;
  Reader reader(body);
  const bool version = reader.number(1) == kMajorVersion;
  (void)reader.take(1);
  (void)reader.take(kRandom);
  const View session = reader.counted(1);
  const View suites = reader.counted(2);
  const View compression = reader.counted(1);
  const bool right = version && session.size() <= kLongestSession && suites.size() >= 2 &&
                     suites.size() % 2 == 0 && !compression.empty();
  if (reader.failed() || !right) return {.state = State::not_tls};
  if (reader.done()) return {.state = State::no_name};  // TLS 1.2 without extensions
  const View extensions = reader.counted(2);
  if (!reader.done()) return {.state = State::not_tls};
  return read_extensions(extensions);
}

/// The handshake message as far as it is there, out of its records.
struct Message {
  std::vector<std::uint8_t> bytes;
  bool is_handshake = true;
};

Message join_records(View bytes) {
  Message message;
  while (!bytes.empty()) {
    const std::size_t length =
        bytes.size() < kRecordHeader ? 1 : static_cast<std::size_t>(bytes[3]) << 8 | bytes[4];
    // Decided by the first bytes: a client of another protocol does not have to send more.
    message.is_handshake = bytes[0] == kHandshake &&
                           (bytes.size() < 2 || bytes[1] == kMajorVersion) && length > 0 &&
                           length <= kLargestRecord;
    if (!message.is_handshake || bytes.size() < kRecordHeader) return message;
    const View body = bytes.subspan(kRecordHeader, std::min(length, bytes.size() - kRecordHeader));
    message.bytes.insert(message.bytes.end(), body.begin(), body.end());
    // What follows a whole ClientHello is not looked at.
    if (message.bytes.size() >= kHandshakeHeader) {
      Reader header(message.bytes);
      (void)header.take(1);
      if (message.bytes.size() >= kHandshakeHeader + header.number(3)) return message;
    }
    bytes = bytes.subspan(kRecordHeader + body.size());
  }
  return message;
}

}  // namespace

ClientHello read_client_hello(View bytes) {
  const View looked_at = bytes.first(std::min(bytes.size(), kLargestHello));
  const Message message = join_records(looked_at);
  if (!message.bytes.empty() && message.bytes[0] != kClientHello) return {.state = State::not_tls};
  if (message.bytes.size() >= kHandshakeHeader) {
    Reader reader(message.bytes);
    (void)reader.take(1);
    const std::size_t length = reader.number(3);
    if (length > kLargestHello) return {.state = State::too_large};
    const View body = reader.take(length);
    if (!reader.failed()) return read_body(body);
  }
  if (!message.is_handshake) return {.state = State::not_tls};
  return {.state = bytes.size() < kLargestHello ? State::more : State::too_large};
}

}  // namespace sbx::network
