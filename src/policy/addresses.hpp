#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// IP addresses and prefixes as values. Texts are strict: one spelling is read as what every other
/// program reads it as, or not at all.
namespace sbx::policy {

enum class Family : std::uint8_t { v4, v6 };

/// In network byte order; of a v4 address the first four bytes count and the others are 0.
struct Address {
  Family family = Family::v4;
  std::array<std::uint8_t, 16> bytes{};

  [[nodiscard]] static constexpr Address v4(std::uint8_t a, std::uint8_t b, std::uint8_t c,
                                            std::uint8_t d) {
    return {.family = Family::v4, .bytes = {a, b, c, d}};
  }
  /// The first 4 or 16 bytes at `data`.
  [[nodiscard]] static Address from_bytes(Family family, const void* data);
  [[nodiscard]] unsigned bits() const { return family == Family::v4 ? 32 : 128; }
  /// "10.1.2.3", "2001:db8::1" (RFC 5952).
  [[nodiscard]] std::string text() const;
  bool operator==(const Address&) const = default;
};

struct Prefix {
  Address address;      ///< all bits after `length` are 0
  unsigned length = 0;  ///< 0 to 32 or 128

  [[nodiscard]] bool contains(const Address& other) const;
  [[nodiscard]] bool contains(const Prefix& other) const;
  [[nodiscard]] bool overlaps(const Prefix& other) const;
  /// "10.1.0.0/16".
  [[nodiscard]] std::string text() const;
  bool operator==(const Prefix&) const = default;
};

/// Dotted decimal, four numbers without leading zeros. No octal, hexadecimal or short forms.
[[nodiscard]] std::optional<Address> parse_v4(std::string_view text);
/// RFC 4291, without a zone.
[[nodiscard]] std::optional<Address> parse_v6(std::string_view text);
/// The address with everything after its first `length` bits 0.
[[nodiscard]] Address masked(const Address& address, unsigned length);
/// The v4 address that a v6 one leads to or stands for: v4-mapped (::ffff:a.b.c.d), v4-compatible
/// (::a.b.c.d), NAT64 (64:ff9b::a.b.c.d, 64:ff9b:1::a.b.c.d), 6to4 (2002:…) and Teredo's client
/// (2001:0:…).
[[nodiscard]] std::optional<Address> embedded_v4(const Address& address);

}  // namespace sbx::policy
