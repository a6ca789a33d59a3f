#include "network/names.hpp"

#include <algorithm>
#include <array>

#include "policy/network_match.hpp"

namespace sbx::network {
namespace {

using policy::Address;
using policy::Family;

/// 198.18.0.1 is the first.
Address nth(std::size_t index) {
  const std::size_t number = index + 1;
  return Address::v4(198, 18, static_cast<std::uint8_t>(number >> 8),
                     static_cast<std::uint8_t>(number & 0xFF));
}

}  // namespace

const Name* Names::allow(std::string_view canonical) {
  exhausted_ = false;
  const std::string key(canonical);
  if (const auto known = index_.find(key); known != index_.end())
    return names_[known->second].get();
  Name name{.name = key, .address = {}, .rules = {}};
  for (const policy::PlacedRule& placed : rules_)
    if (placed.rule.has_name(canonical)) name.rules.push_back(&placed);
  if (name.rules.empty()) return nullptr;
  exhausted_ = names_.size() >= kMost;
  if (exhausted_) return nullptr;
  name.address = nth(names_.size());
  index_.emplace(key, names_.size());
  names_.push_back(std::make_unique<Name>(std::move(name)));
  return names_.back().get();
}

const Name* Names::at(const Address& address) const {
  if (address.family != Family::v4 || address.bytes[0] != 198 || address.bytes[1] != 18)
    return nullptr;
  const std::size_t number = static_cast<std::size_t>(address.bytes[2]) << 8 | address.bytes[3];
  return number >= 1 && number <= names_.size() ? names_[number - 1].get() : nullptr;
}

bool is_synthetic(const Address& address) {
  if (address.family == Family::v4) return address.bytes[0] == 198 && (address.bytes[1] & ~1) == 18;
  // The link's fd53:6278::/64.
  constexpr std::array<std::uint8_t, 8> kLink = {0xFD, 0x53, 0x62, 0x78, 0, 0, 0, 0};
  return std::equal(kLink.begin(), kLink.end(), address.bytes.begin());
}

}  // namespace sbx::network
