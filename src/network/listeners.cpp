#include "network/listeners.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <time.h>

#include <algorithm>
#include <vector>

#include "network/socket_address.hpp"
#include "policy/network_match.hpp"

namespace sbx::network {
namespace {

using policy::Address;
using policy::Family;
using policy::NetworkRule;
using policy::PlacedRule;
using policy::Transport;

constexpr int kListenerBacklog = 4096;
/// Names that a wildcard is likely to have in a short run.
constexpr std::size_t kNamesOfAWildcard = 4;
/// The rest comes from a helper when it is needed.
constexpr std::size_t kMostFromStart = 96;

int type_of(Transport transport) {
  return transport == Transport::tcp ? SOCK_STREAM : SOCK_DGRAM;
}

bool prepare(int socket, Family family, Transport transport) {
  // Wildcard and specific listeners of one port need both to have it.
  bool right = set_option(socket, SOL_SOCKET, SO_REUSEPORT, 1);
  if (family == Family::v6) {
    right &= set_option(socket, SOL_IPV6, IPV6_V6ONLY, 1);
    // An address of the catch-all route is not "local" enough for bind(2) in IPv6.
    right &= set_option(socket, SOL_IPV6, IPV6_FREEBIND, 1);
  } else {
    right &= set_option(socket, SOL_IP, IP_FREEBIND, 1);
  }
  if (transport == Transport::tcp) {
    right &= set_option(socket, SOL_TCP, TCP_NODELAY, 1);  // accepted ones inherit it
  } else {
    right &= family == Family::v4 ? set_option(socket, SOL_IP, IP_PKTINFO, 1)
                                  : set_option(socket, SOL_IPV6, IPV6_RECVPKTINFO, 1);
  }
  return right;
}

std::uint64_t real_nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

Listeners::Listeners(SocketPool& pool, const std::vector<PlacedRule>& rules, const Names& names)
    : pool_(pool),
      rules_(rules),
      names_(names),
      any_wide_(std::ranges::any_of(
          rules, [](const PlacedRule& placed) { return placed.rule.is_wide(); })) {}

std::vector<SocketRequest> Listeners::requests(std::span<const PlacedRule> rules, bool ipv6) {
  std::vector<SocketRequest> requests;
  for (const PlacedRule& placed : rules) {
    const NetworkRule& rule = placed.rule;
    const bool v6 =
        rule.kind == NetworkRule::Kind::prefix && rule.prefix.address.family == Family::v6;
    if (v6 && !ipv6) continue;
    std::size_t count = rule.is_wide() ? 0 : rule.port_count();
    if (rule.kind == NetworkRule::Kind::wildcard) count *= kNamesOfAWildcard;
    for (; count > 0 && requests.size() < kMostFromStart; --count)
      requests.push_back({.domain = v6 ? AF_INET6 : AF_INET,
                          .type = type_of(rule.transport),
                          .protocol = 0,
                          .in_gateway = true,
                          .loopback_port = 0});
  }
  return requests;
}

std::string Listeners::key_of(const Endpoint& place) {
  std::string key;
  key += static_cast<char>(place.transport);
  key += static_cast<char>(place.family);
  key += static_cast<char>(place.port >> 8);
  key += static_cast<char>(place.port & 0xFF);
  if (!place.every_address)
    key.append(reinterpret_cast<const char*>(place.address.bytes.data()), place.address.bits() / 8);
  return key;
}

Result<UniqueFd> Listeners::listening_socket(const Endpoint& place) {
  UniqueFd socket = SBX_TRY(pool_.take(domain_of(place.family), type_of(place.transport)));
  const SocketAddress address = place.every_address ? SocketAddress::any(place.family, place.port)
                                                    : SocketAddress(place.address, place.port);
  if (prepare(socket.get(), place.family, place.transport) &&
      ::bind(socket.get(), address.data(), address.size()) == 0 &&
      (place.transport == Transport::udp || ::listen(socket.get(), kListenerBacklog) == 0))
    return socket;
  return fail_errno(
      ErrorKind::setup, "setup-gateway",
      "cannot listen on " + with_port(address.address(), place.port) + " in the gateway");
}

Status Listeners::add(const Endpoint& place, const Name* name, const PlacedRule* rule) {
  std::string key = key_of(place);
  if (taken_.contains(key)) return {};
  UniqueFd socket = SBX_TRY(listening_socket(place));
  taken_.insert(std::move(key));
  listeners_.push_back({.socket = std::move(socket),
                        .transport = place.transport,
                        .port = place.port,
                        .name = name,
                        .rule = rule});
  if (added_) added_(listeners_.back());
  return {};
}

Status Listeners::add_ports(const PlacedRule& placed, Endpoint place, const Name* name,
                            const PlacedRule* decided) {
  if (placed.rule.is_wide()) return {};
  for (const policy::PortRange& range : placed.rule.ports)
    for (unsigned port = range.first; port <= range.last; ++port) {
      place.port = static_cast<std::uint16_t>(port);
      SBX_TRY(add(place, name, decided));
    }
  return {};
}

Status Listeners::listen_for_addresses(bool ipv6) {
  for (const PlacedRule& placed : rules_) {
    const NetworkRule& rule = placed.rule;
    if (rule.kind != NetworkRule::Kind::prefix) continue;
    const Family family = rule.prefix.address.family;
    if (family == Family::v6 && !ipv6) continue;
    const bool exact = rule.prefix.length == rule.prefix.address.bits();
    SBX_TRY(add_ports(placed,
                      {.transport = rule.transport,
                       .family = family,
                       .every_address = !exact,
                       .address = rule.prefix.address,
                       .port = 0},
                      nullptr, exact ? &placed : nullptr));
  }
  return {};
}

Status Listeners::listen_for(const Name& name) {
  if (listened_.contains(&name)) return {};
  for (const PlacedRule* placed : name.rules)
    SBX_TRY(add_ports(*placed,
                      {.transport = placed->rule.transport,
                       .family = Family::v4,
                       .every_address = false,
                       .address = name.address,
                       .port = 0},
                      &name, placed));
  listened_.insert(&name);
  return {};
}

const PlacedRule* Listeners::wide_rule(const Endpoint& place, const Name* name) const {
  if (name == nullptr) {
    const PlacedRule* const found =
        is_synthetic(place.address)
            ? nullptr
            : policy::rule_for_address(rules_, place.transport, place.address, place.port);
    return found != nullptr && found->rule.is_wide() ? found : nullptr;
  }
  const auto found = std::ranges::find_if(name->rules, [&](const PlacedRule* placed) {
    return placed->rule.transport == place.transport && placed->rule.is_wide() &&
           placed->rule.has_port(place.port);
  });
  return found == name->rules.end() ? nullptr : *found;
}

Result<Listener*> Listeners::open(Transport transport, const Address& address, std::uint16_t port) {
  const Endpoint place{.transport = transport,
                       .family = address.family,
                       .every_address = false,
                       .address = address,
                       .port = port};
  const Name* const name = any_wide_ ? names_.at(address) : nullptr;
  const PlacedRule* const rule = any_wide_ ? wide_rule(place, name) : nullptr;
  if (rule == nullptr) return nullptr;
  std::string key = key_of(place);
  if (const auto known = opened_at_.find(key); known != opened_at_.end()) {
    opened_.splice(opened_.end(), opened_, known->second);
    return &*known->second->listener;
  }
  if (has(transport, address, port)) return nullptr;
  if (opened_.size() >= kMostOpened) close_oldest();
  UniqueFd socket = SBX_TRY(listening_socket(place));
  if (transport == Transport::udp && !set_option(socket.get(), SOL_SOCKET, SO_TIMESTAMPNS, 1))
    return fail_errno(ErrorKind::setup, "setup-gateway", "cannot time the datagrams of a port");
  listeners_.push_back({.socket = std::move(socket),
                        .transport = transport,
                        .port = port,
                        .name = name,
                        .rule = name != nullptr ? rule : nullptr,
                        .opened_at = real_nanoseconds()});
  taken_.insert(key);
  opened_.push_back({.key = key, .listener = std::prev(listeners_.end())});
  opened_at_.emplace(std::move(key), std::prev(opened_.end()));
  if (added_) added_(listeners_.back());
  return &listeners_.back();
}

void Listeners::close_oldest() {
  const Opened oldest = std::move(opened_.front());
  opened_.pop_front();
  opened_at_.erase(oldest.key);
  taken_.erase(oldest.key);
  if (closing_) closing_(*oldest.listener);
  listeners_.erase(oldest.listener);
}

void Listeners::tell(OnListener added, OnListener closing) {
  added_ = std::move(added);
  closing_ = std::move(closing);
  if (added_)
    for (Listener& listener : listeners_) added_(listener);
}

bool Listeners::has(Transport transport, const Address& address, std::uint16_t port) const {
  if (port == 53) return true;
  Endpoint place{.transport = transport,
                 .family = address.family,
                 .every_address = false,
                 .address = address,
                 .port = port};
  if (taken_.contains(key_of(place))) return true;
  place.every_address = true;
  return taken_.contains(key_of(place));
}

bool Listeners::anything_waits() const {
  std::vector<pollfd> sockets;
  for (const Listener& listener : listeners_)
    sockets.push_back({.fd = listener.socket.get(), .events = POLLIN, .revents = 0});
  return ::poll(sockets.data(), sockets.size(), 0) > 0;
}

}  // namespace sbx::network
