#include "network/special.hpp"

#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <memory>

#include "policy/network_match.hpp"
#include "policy/syntax.hpp"

namespace sbx::network {
namespace {

using policy::Address;
using policy::Family;
using policy::NetworkRule;
using policy::Special;
using policy::SpecialRange;

constexpr std::string_view kOwnAddress = "an address of this machine";

std::optional<Address> address_of(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return Address::from_bytes(Family::v4, &v4->sin_addr);
  }
  if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    return Address::from_bytes(Family::v6, &v6->sin6_addr);
  }
  return std::nullopt;
}

/// The host's loopback: reached by its own name, whatever else is refused.
bool is_loopback(const Address& address) {
  return address.family == Family::v4 ? address.bytes[0] == 127
                                      : address == *policy::parse_v6("::1");
}

/// What `host.sbx.internal` leads to.
bool is_host_loopback(const Address& address) {
  return address == Address::v4(127, 0, 0, 1) || address == *policy::parse_v6("::1");
}

/// Refused, with the rule that would allow it; without one where no rule can (sbx-policy(5),
/// "Rules").
Refused refused_but_for(std::string why, const Address& address, const NetworkRule& rule,
                        std::uint16_t port) {
  NetworkRule one{.transport = rule.transport, .ports = {{port, port}}};
  if (is_host_loopback(address)) {
    one.kind = NetworkRule::Kind::host;
    one.name = policy::kHostLoopbackName;
  } else {
    one.kind = NetworkRule::Kind::prefix;
    one.prefix = {.address = address, .length = address.bits()};
    one.exact = true;
  }
  const std::string text = one.text();
  if (!policy::parse_network_rule(text)) return {std::move(why), {}};
  return {std::move(why), "network.allow = [" + policy::quoted(text) + "]", {"--allow-host", text}};
}

Refused refused_unless_private(std::string why) {
  return {std::move(why), "network.private = true", {"--set", "network.private=true"}};
}

/// Whether a rule other than the one that was asked by allows exactly this address.
bool is_named(std::span<const policy::PlacedRule> rules, policy::Transport transport,
              const Address& address, std::uint16_t port) {
  return std::ranges::any_of(rules, [&](const policy::PlacedRule& placed) {
    const NetworkRule& rule = placed.rule;
    if (rule.transport != transport || !rule.has_port(port)) return false;
    if (rule.kind == NetworkRule::Kind::host) return is_host_loopback(address);
    return rule.kind == NetworkRule::Kind::prefix && rule.exact && rule.prefix.address == address;
  });
}

std::string why_special(const SpecialRange& range) {
  return std::string(range.reason) + " (" + std::string(range.registry) + ")";
}

/// What a rule by name may not lead to.
std::optional<Refused> refused_by_name(bool private_, const SpecialRange* range, bool own,
                                       const Address& address, const NetworkRule& rule,
                                       std::uint16_t port) {
  const bool only_exact = own || (range != nullptr && range->special == Special::exact);
  const bool never = range != nullptr && range->special == Special::never;
  if (never) return Refused{why_special(*range), {}};
  if (only_exact)
    return refused_but_for(
        range != nullptr && !own ? why_special(*range) : std::string(kOwnAddress), address, rule,
        port);
  if (range == nullptr || range->special == Special::global || private_) return std::nullopt;
  return refused_unless_private(why_special(*range));
}

/// What a rule by address may not lead to although it has the address.
std::optional<Refused> refused_by_prefix(const SpecialRange* range, bool own,
                                         const Address& address, const NetworkRule& rule,
                                         std::uint16_t port) {
  if (range != nullptr && range->special == Special::never) return Refused{why_special(*range), {}};
  if (rule.exact) return std::nullopt;
  if (own) return refused_but_for(std::string(kOwnAddress), address, rule, port);
  if (range == nullptr || range->special == Special::global) return std::nullopt;
  if (range->special == Special::reserved && range->prefix.contains(rule.prefix))
    return std::nullopt;
  return refused_but_for(why_special(*range), address, rule, port);
}

/// "private" where a reader would call all of them that; else the reason of the first.
std::string group_reason(const std::vector<Address>& resolved, bool some_own) {
  if (some_own) return "leads only to addresses of this machine";
  const bool all_reserved = std::ranges::all_of(resolved, [](const Address& address) {
    const SpecialRange* range = policy::special_range(address);
    return range != nullptr && range->special == Special::reserved;
  });
  return all_reserved ? "leads only to private addresses" : "leads only to refused addresses";
}

std::string listed(const std::vector<Address>& addresses) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(addresses.size(), kMost); ++i)
    text += (i == 0 ? "" : ", ") + addresses[i].text();
  return addresses.size() > kMost ? text + ", …" : text;
}

}  // namespace

Result<HostAddresses> HostAddresses::read() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0)
    return fail_errno(ErrorKind::host, "no-interface-list",
                      "cannot list the addresses of this machine");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(list, ::freeifaddrs);
  std::vector<Address> addresses;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (const auto address = address_of(each->ifa_addr)) addresses.push_back(*address);
  }
  return HostAddresses(std::move(addresses));
}

bool HostAddresses::has(const Address& address) const {
  if (std::ranges::find(addresses_, address) != addresses_.end()) return true;
  const auto carried = policy::embedded_v4(address);
  return carried && std::ranges::find(addresses_, *carried) != addresses_.end();
}

std::optional<Refused> refused(const NetworkRule& rule, bool private_, const Address& address,
                               std::uint16_t port, const HostAddresses& host) {
  if (rule.kind == NetworkRule::Kind::host) {
    if (is_loopback(address)) return std::nullopt;
    return Refused{"not the host's loopback", {}};
  }
  const SpecialRange* range = policy::special_range(address);
  const bool own = host.has(address);
  if (rule.kind != NetworkRule::Kind::prefix)
    return refused_by_name(private_, range, own, address, rule, port);
  if (!rule.prefix.contains(address))
    return refused_but_for("outside of " + rule.prefix.text(), address, rule, port);
  return refused_by_prefix(range, own, address, rule, port);
}

Usable usable(const NetworkRule& rule, bool private_, const std::vector<Address>& resolved,
              std::uint16_t port, const HostAddresses& host,
              std::span<const policy::PlacedRule> rules) {
  Usable result;
  std::optional<Refused> first;
  for (const Address& address : resolved) {
    auto no = refused(rule, private_, address, port, host);
    if (!no || is_named(rules, rule.transport, address, port))
      result.addresses.push_back(address);
    else if (!first || (first->allow_with.empty() && !no->allow_with.empty()))
      first = std::move(no);
  }
  if (!result.addresses.empty() || !first) return result;
  const bool own = std::ranges::all_of(
      resolved, [&](const Address& address) { return is_loopback(address) || host.has(address); });
  result.refused = std::move(*first);
  result.refused.why = group_reason(resolved, own) + " (" + listed(resolved) + ")";
  return result;
}

}  // namespace sbx::network
