#include "network/offline.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "base/network_addresses.hpp"
#include "base/sys.hpp"
#include "network/denials.hpp"

namespace sbx::network {
namespace {

using policy::Address;
using policy::Family;

/// A question follows its connect(2) sooner.
constexpr std::uint64_t kQuestionMicroseconds = 1'000'000;

template <class T>
std::optional<T> as(std::span<const std::byte> bytes) {
  T value{};
  if (bytes.size() < sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::optional<Attempt> destination_of(std::span<const std::byte> bytes) {
  const auto family = as<sa_family_t>(bytes);
  if (family == AF_INET) {
    const auto v4 = as<sockaddr_in>(bytes);
    if (!v4) return std::nullopt;
    return Attempt{Address::from_bytes(Family::v4, &v4->sin_addr), ntohs(v4->sin_port)};
  }
  if (family != AF_INET6) return std::nullopt;
  // The kernel takes one without the scope of RFC 2133, too.
  constexpr std::size_t kWithoutScope = offsetof(sockaddr_in6, sin6_scope_id);
  sockaddr_in6 v6{};
  if (bytes.size() < kWithoutScope) return std::nullopt;
  std::memcpy(&v6, bytes.data(), kWithoutScope);
  const Address address = Address::from_bytes(Family::v6, &v6.sin6_addr);
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
  return Attempt{mapped ? *policy::embedded_v4(address) : address, ntohs(v6.sin6_port)};
}

/// The loopback, and the unspecified address, which leads there.
bool stays_inside(const Address& address) {
  if (address.family == Family::v4)
    return address.bytes[0] == 127 || address == Address::v4(0, 0, 0, 0);
  return address == *policy::parse_v6("::1") || address == *policy::parse_v6("::");
}

SocketRequest resolver_socket(int type) {
  return {.domain = AF_INET,
          .type = type,
          .protocol = 0,
          .in_gateway = false,
          .loopback_port = kDnsPort};
}

}  // namespace

std::optional<Attempt> outside(std::span<const std::byte> socket_address) {
  auto destination = destination_of(socket_address);
  if (!destination || destination->port == 0 || stays_inside(destination->address))
    return std::nullopt;
  return destination;
}

std::uint16_t own_port(std::span<const std::byte> socket_address) {
  const auto destination = destination_of(socket_address);
  return destination && stays_inside(destination->address) ? destination->port : std::uint16_t{0};
}

void Offline::connect_inside(std::uint16_t port) {
  constexpr std::size_t kMost = 16;
  if (own_ports_.size() < kMost && std::ranges::find(own_ports_, port) == own_ports_.end())
    own_ports_.push_back(port);
}

bool asks_for_names(std::span<const std::byte> socket_address) {
  const auto destination = destination_of(socket_address);
  return destination && destination->port == kDnsPort && stays_inside(destination->address);
}

std::vector<SocketRequest> Offline::requests() {
  return {resolver_socket(SOCK_DGRAM), resolver_socket(SOCK_STREAM)};
}

Status Offline::attach(EventLoop& loop) {
  dns_.emplace(loop, [this](const dns::Query& query) { return answer(query); });
  const std::vector<SocketRequest> order = requests();
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    SBX_TRY(order[i].type == SOCK_DGRAM ? dns_->serve_udp(std::move(sockets_[i]))
                                        : dns_->serve_tcp(std::move(sockets_[i])));
  }
  sockets_.clear();
  return {};
}

dns::Answer Offline::answer(const dns::Query& query) {
  Denial denial = refused_name(plan_, query.shown, query.name);
  // One look-up asks for both families.
  const bool again = query.type == static_cast<std::uint16_t>(dns::Type::aaaa);
  tally_.deny(
      std::move(denial), [this] { return asker(); },
      again ? Tally::Count::at_least_once : Tally::Count::each);
  return {.rcode = dns::Rcode::no_such_name, .address = {}, .ttl_seconds = 0};
}

void Offline::connect(const Attempt& destination,
                      const std::function<std::string()>& process_name) {
  tally_.deny(refused_connect(plan_, destination.transport, destination.address, destination.port),
              process_name, Tally::Count::each);
}

void Offline::asks(std::uint32_t thread, std::function<std::string()> process_name) {
  was_asked_ = true;
  const std::uint64_t now = sys::now_microseconds();
  const bool alone = asker_.thread == thread || now - asker_.since > kQuestionMicroseconds;
  asker_ = {
      .thread = thread, .since = now, .alone = alone, .process_name = std::move(process_name)};
}

/// A DNS query does not name its process. It is the process that just opened a connection to a DNS
/// server, if only one did.
std::string Offline::asker() const {
  const bool known =
      asker_.alone && sys::now_microseconds() - asker_.since <= kQuestionMicroseconds;
  return known ? asker_.process_name() : "";
}

}  // namespace sbx::network
