#include "policy/special_ranges.hpp"

#include <algorithm>
#include <array>

namespace sbx::policy {
namespace {

constexpr Prefix v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d,
                    unsigned length) {
  return {.address = Address::v4(a, b, c, d), .length = length};
}

/// The first four groups of 16 bits and the last four.
constexpr Prefix v6(std::array<std::uint16_t, 4> head, unsigned length,
                    std::array<std::uint16_t, 4> tail = {}) {
  Prefix prefix{.address = {.family = Family::v6}, .length = length};
  const auto put = [&](std::size_t group, std::uint16_t value) {
    prefix.address.bytes[group * 2] = static_cast<std::uint8_t>(value >> 8);
    prefix.address.bytes[group * 2 + 1] = static_cast<std::uint8_t>(value & 0xff);
  };
  for (std::size_t i = 0; i < 4; ++i) put(i, head[i]);
  for (std::size_t i = 0; i < 4; ++i) put(i + 4, tail[i]);
  return prefix;
}

using enum Special;

// IANA's IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890, as of 2025), with what they
// call globally reachable inside of ranges that are not; multicast; and what hands out credentials
// of the machine. A range stands before those that contain it.
// clang-format off: one range is one line.
constexpr auto kRanges = std::to_array<SpecialRange>({
  {v4(169, 254, 169, 254, 32), exact, "the machine's metadata service, which hands out credentials", "cloud"},
  {v4(169, 254, 170, 2, 32), exact, "the container's credentials service", "Amazon ECS"},
  {v4(169, 254, 170, 23, 32), exact, "the pod's credentials service", "Amazon EKS"},
  {v4(169, 254, 0, 23, 32), exact, "the machine's metadata service, which hands out credentials", "Tencent Cloud"},
  {v4(169, 254, 42, 42, 32), exact, "the machine's metadata service, which hands out credentials", "Scaleway"},
  {v4(100, 100, 100, 200, 32), exact, "the machine's metadata service, which hands out credentials", "Alibaba Cloud"},
  {v4(168, 63, 129, 16, 32), exact, "the machine's platform service, which hands out credentials", "Azure"},
  {v4(192, 0, 0, 192, 32), exact, "the machine's metadata service, which hands out credentials", "Oracle Cloud"},

  {v4(0, 0, 0, 0, 8), never, "\"this network\", no destination", "RFC 791"},
  {v4(10, 0, 0, 0, 8), reserved, "a private address", "RFC 1918"},
  {v4(100, 64, 0, 0, 10), reserved, "shared address space of a provider", "RFC 6598"},
  {v4(127, 0, 0, 0, 8), exact, "a loopback address", "RFC 1122"},
  {v4(169, 254, 0, 0, 16), reserved, "a link-local address", "RFC 3927"},
  {v4(172, 16, 0, 0, 12), reserved, "a private address", "RFC 1918"},
  {v4(192, 0, 0, 9, 32), global, "port control anycast", "RFC 7723"},
  {v4(192, 0, 0, 10, 32), global, "TURN anycast", "RFC 8155"},
  {v4(192, 0, 0, 0, 24), reserved, "an address of IETF protocol assignments", "RFC 6890"},
  {v4(192, 0, 2, 0, 24), reserved, "a documentation address", "RFC 5737"},
  {v4(192, 88, 99, 0, 24), reserved, "a 6to4 relay address", "RFC 7526"},
  {v4(192, 168, 0, 0, 16), reserved, "a private address", "RFC 1918"},
  {v4(198, 18, 0, 0, 15), never, "an address for benchmarks, which sbx uses inside of sandboxes", "RFC 2544"},
  {v4(198, 51, 100, 0, 24), reserved, "a documentation address", "RFC 5737"},
  {v4(203, 0, 113, 0, 24), reserved, "a documentation address", "RFC 5737"},
  {v4(224, 0, 0, 0, 4), never, "a multicast address", "RFC 5771"},
  {v4(255, 255, 255, 255, 32), never, "the broadcast address", "RFC 919"},
  {v4(240, 0, 0, 0, 4), reserved, "a reserved address", "RFC 1112"},

  {v6({0xfd00, 0x0ec2}, 128, {0, 0, 0, 0x254}), exact, "the machine's metadata service, which hands out credentials", "Amazon EC2"},
  {v6({0xfd00, 0x0ec2}, 128, {0, 0, 0, 0x23}), exact, "the pod's credentials service", "Amazon EKS"},
  {v6({0xfd00, 0x00c1}, 128, {0, 0, 0xa9fe, 0xa9fe}), exact, "the machine's metadata service, which hands out credentials", "Oracle Cloud"},
  {v6({0xfd00, 0x0042}, 128, {0, 0, 0, 0x42}), exact, "the machine's metadata service, which hands out credentials", "Scaleway"},
  {v6({0xfd20, 0x00ce}, 128, {0, 0, 0, 0x254}), exact, "the machine's metadata service, which hands out credentials", "Google Cloud"},

  {v6({}, 128), never, "the unspecified address", "RFC 4291"},
  {v6({}, 128, {0, 0, 0, 1}), exact, "the loopback address", "RFC 4291"},
  {v6({}, 96, {0, 0xffff, 0, 0}), reserved, "an IPv4-mapped address", "RFC 4291"},
  {v6({}, 96), reserved, "an IPv4-compatible address", "RFC 4291"},
  {v6({0x64, 0xff9b}, 96), global, "an IPv4 address behind NAT64", "RFC 6052"},
  {v6({0x64, 0xff9b, 1}, 48), reserved, "an IPv4 address behind a local NAT64", "RFC 8215"},
  {v6({0x100}, 64), reserved, "a discard-only address", "RFC 6666"},
  {v6({0x100, 0, 0, 1}, 64), reserved, "a dummy address", "RFC 9780"},
  {v6({}, 3), reserved, "not a global unicast address", "RFC 4291"},
  {v6({0x2001}, 32), reserved, "a Teredo address", "RFC 4380"},
  {v6({0x2001, 1}, 128, {0, 0, 0, 1}), global, "port control anycast", "RFC 7723"},
  {v6({0x2001, 1}, 128, {0, 0, 0, 2}), global, "TURN anycast", "RFC 8155"},
  {v6({0x2001, 1}, 128, {0, 0, 0, 3}), global, "DNS-SD service registration anycast", "RFC 9665"},
  {v6({0x2001, 2}, 48), reserved, "an address for benchmarks", "RFC 5180"},
  {v6({0x2001, 3}, 32), global, "automatic multicast tunnelling", "RFC 7450"},
  {v6({0x2001, 4, 0x112}, 48), global, "AS112", "RFC 7535"},
  {v6({0x2001, 0x10}, 28), reserved, "an ORCHID, no address", "RFC 4843"},
  {v6({0x2001, 0x20}, 28), global, "ORCHIDv2", "RFC 7343"},
  {v6({0x2001, 0x30}, 28), global, "drone identification", "RFC 9374"},
  {v6({0x2001}, 23), reserved, "an address of IETF protocol assignments", "RFC 2928"},
  {v6({0x2001, 0xdb8}, 32), reserved, "a documentation address", "RFC 3849"},
  {v6({0x2002}, 16), reserved, "a 6to4 address", "RFC 3056"},
  {v6({0x3fff}, 20), reserved, "a documentation address", "RFC 9637"},
  {v6({0x5f00}, 16), reserved, "a segment routing identifier", "RFC 9602"},
  {v6({0x4000}, 2), reserved, "not a global unicast address", "RFC 4291"},
  {v6({0xfc00}, 7), reserved, "a unique local address", "RFC 4193"},
  {v6({0xfe80}, 10), never, "a link-local address, which needs an interface", "RFC 4291"},
  {v6({0xfec0}, 10), reserved, "a site-local address", "RFC 3879"},
  {v6({0xff00}, 8), never, "a multicast address", "RFC 4291"},
  {v6({0x8000}, 1), reserved, "not a global unicast address", "RFC 4291"},
});
// clang-format on

const SpecialRange* narrowest(const Address& address) {
  const auto* found = std::ranges::find_if(
      kRanges, [&](const SpecialRange& range) { return range.prefix.contains(address); });
  return found == kRanges.end() ? nullptr : found;
}

}  // namespace

std::span<const SpecialRange> special_ranges() {
  return kRanges;
}

const SpecialRange* special_range(const Address& address) {
  const SpecialRange* own = narrowest(address);
  const auto carried = embedded_v4(address);
  const SpecialRange* inner = carried ? narrowest(*carried) : nullptr;
  const auto weight = [](const SpecialRange* range) {
    return range == nullptr ? Special::global : range->special;
  };
  return weight(inner) > weight(own) ? inner : own;
}

const SpecialRange* special_range(const Prefix& prefix) {
  const auto* found = std::ranges::find_if(
      kRanges, [&](const SpecialRange& range) { return range.prefix.contains(prefix); });
  return found == kRanges.end() ? nullptr : found;
}

}  // namespace sbx::policy
