#include "policy/addresses.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace sbx::policy {
namespace {

int family_number(Family family) {
  return family == Family::v4 ? AF_INET : AF_INET6;
}

std::optional<Address> parse(Family family, std::string_view text) {
  // inet_pton wants a terminated text, and would end at a NUL within it.
  std::array<char, INET6_ADDRSTRLEN> terminated{};
  if (text.size() >= terminated.size() || text.find('\0') != std::string_view::npos)
    return std::nullopt;
  std::ranges::copy(text, terminated.begin());
  Address address{.family = family};
  if (::inet_pton(family_number(family), terminated.data(), address.bytes.data()) != 1)
    return std::nullopt;
  return address;
}

bool all_zero(const Address& address, std::size_t first, std::size_t last) {
  return std::all_of(address.bytes.begin() + static_cast<std::ptrdiff_t>(first),
                     address.bytes.begin() + static_cast<std::ptrdiff_t>(last),
                     [](std::uint8_t byte) { return byte == 0; });
}

Address v4_at(const Address& address, std::size_t at) {
  return Address::from_bytes(Family::v4, address.bytes.data() + at);
}

}  // namespace

Address Address::from_bytes(Family family, const void* data) {
  Address address{.family = family};
  std::memcpy(address.bytes.data(), data, family == Family::v4 ? 4 : 16);
  return address;
}

std::string Address::text() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family_number(family), bytes.data(), text.data(), text.size());
  return text.data();
}

Address masked(const Address& address, unsigned length) {
  Address result = address;
  for (unsigned i = 0; i < address.bits() / 8; ++i) {
    const unsigned kept = length > i * 8 ? std::min(length - i * 8, 8U) : 0;
    result.bytes[i] &= static_cast<std::uint8_t>(0xff00U >> kept);
  }
  return result;
}

bool Prefix::contains(const Address& other) const {
  return other.family == address.family && masked(other, length) == address;
}

bool Prefix::contains(const Prefix& other) const {
  return other.length >= length && contains(other.address);
}

bool Prefix::overlaps(const Prefix& other) const {
  return contains(other) || other.contains(*this);
}

std::string Prefix::text() const {
  return address.text() + "/" + std::to_string(length);
}

// glibc's inet_pton takes four decimal numbers without leading zeros and nothing else.
std::optional<Address> parse_v4(std::string_view text) {
  return parse(Family::v4, text);
}

std::optional<Address> parse_v6(std::string_view text) {
  return parse(Family::v6, text);
}

std::optional<Address> embedded_v4(const Address& address) {
  if (address.family != Family::v6) return std::nullopt;
  const auto& bytes = address.bytes;
  const bool mapped = all_zero(address, 0, 10) && bytes[10] == 0xff && bytes[11] == 0xff;
  // ::1 and :: are addresses of their own.
  const bool compatible = all_zero(address, 0, 12) && !(all_zero(address, 12, 15) && bytes[15] < 2);
  const bool nat64 = bytes[0] == 0 && bytes[1] == 0x64 && bytes[2] == 0xff && bytes[3] == 0x9b &&
                     (all_zero(address, 4, 12) ||  // RFC 6052, and RFC 8215 as it is mostly used
                      (bytes[4] == 0 && bytes[5] == 1 && all_zero(address, 6, 12)));
  if (mapped || compatible || nat64) return v4_at(address, 12);
  if (bytes[0] == 0x20 && bytes[1] == 0x02) return v4_at(address, 2);
  if (bytes[0] == 0x20 && bytes[1] == 0x01 && bytes[2] == 0 && bytes[3] == 0) {
    Address client = v4_at(address, 12);  // inverted, so that translators don't rewrite it
    for (std::size_t i = 0; i < 4; ++i) client.bytes[i] ^= 0xff;
    return client;
  }
  return std::nullopt;
}

}  // namespace sbx::policy
