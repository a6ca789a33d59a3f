#pragma once

#include <cstdint>
#include <span>
#include <string>

/// The name in the first bytes of a TLS connection (RFC 8446, 6066). Pure; nothing is decrypted.
namespace sbx::network {

struct ClientHello {
  enum class State : std::uint8_t {
    more,       ///< a TLS ClientHello so far; needs more bytes
    not_tls,    ///< no TLS handshake, or a malformed one
    no_name,    ///< a whole ClientHello without a server name
    bad_name,   ///< its server name is not a host name (an address, NUL, empty, two of them)
    named,      ///< `name` is the server name, canonical
    too_large,  ///< kLargestHello bytes and still no whole ClientHello
  };
  State state = State::more;
  /// Canonical (policy::canonical_name). With Encrypted Client Hello this is the outer name.
  std::string name;
  bool encrypted = false;  ///< it has an encrypted_client_hello extension: the inner name is hidden
};

/// Bytes of the first flight that are looked at.
inline constexpr std::size_t kLargestHello = 16384;

/// Looks at all bytes that came so far, records of any size. The answer other than `more` is
/// final: later bytes don't change it.
[[nodiscard]] ClientHello read_client_hello(std::span<const std::uint8_t> bytes);

}  // namespace sbx::network
