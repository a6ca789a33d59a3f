#include "network/dialer.hpp"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <utility>

#include "network/socket_address.hpp"

namespace sbx::network {
namespace {

using namespace std::chrono_literals;
using policy::Address;
using policy::NetworkRule;
using policy::Transport;

/// A whole attempt; the last address has what the others left.
constexpr auto kConnectTime = 10s;
/// An address that does not answer gives way to the next one.
constexpr auto kOneOfMany = 2s;
constexpr std::size_t kMostTried = 8;

UniqueFd watch_addresses() {
  UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  sockaddr_nl address{.nl_family = AF_NETLINK,
                      .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
  if (socket.valid() &&
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    socket.reset();
  return socket;
}

std::string reason_of(int error, const Address& address) {
  switch (error) {
    case ECONNREFUSED:
      return "refused by " + address.text();
    case ETIMEDOUT:
      return "timed out at " + address.text();
    case EHOSTUNREACH:
    case ENETUNREACH:
      return "no route to " + address.text();
    default:
      return Error{.message = "cannot connect to " + address.text(), .errno_value = error}.text();
  }
}

}  // namespace

std::string Destination::text() const {
  return name.empty() ? with_port(address, port) : name + ":" + std::to_string(port);
}

struct Dialer::Dial {
  DialId id = 0;
  Destination destination;
  Reached reached;
  Resolver::LookupId lookup = 0;
  bool looking_up = false;
  std::vector<Address> addresses;
  std::size_t next = 0;
  UniqueFd socket;
  EventLoop::TimerId timer = EventLoop::kNoTimer;
  std::string last_failure;
};

Dialer::Dialer(EventLoop& loop, const plan::NetworkPlan& plan) : loop_(loop), plan_(plan) {}

Dialer::~Dialer() {
  while (!dials_.empty()) cancel(dials_.begin()->first);
}

/// Reads them again only after the kernel reported a change.
const HostAddresses& Dialer::host_addresses() {
  bool changed = !host_known_;
  if (!address_changes_.valid() && !host_known_) address_changes_ = watch_addresses();
  std::array<char, 4096> news;
  // Any answer but "nothing new" (news, an overrun queue, no socket at all) is a change.
  while (::recv(address_changes_.get(), news.data(), news.size(), MSG_DONTWAIT) >= 0 ||
         errno == ENOBUFS)
    changed = true;
  if (errno != EAGAIN) changed = true;
  if (!changed) return host_;
  auto read = HostAddresses::read();
  host_known_ = read.has_value();
  if (read) host_ = std::move(*read);
  return host_;
}

Dialer::DialId Dialer::dial(const Destination& destination, Reached reached) {
  auto made = std::make_unique<Dial>();
  Dial& dial = *made;
  dial.id = ++last_;
  dial.destination = destination;
  dial.reached = std::move(reached);
  dials_.emplace(dial.id, std::move(made));
  const DialId id = dial.id;
  switch (destination.rule->rule.kind) {
    case NetworkRule::Kind::name:
    case NetworkRule::Kind::wildcard:
      resolve(dial);
      break;
    case NetworkRule::Kind::prefix:
      check(dial, {destination.address});
      break;
    case NetworkRule::Kind::host:
      check(dial, {Address::v4(127, 0, 0, 1), *policy::parse_v6("::1")});
      break;
  }
  return id;
}

void Dialer::cancel(DialId id) {
  const auto found = dials_.find(id);
  if (found == dials_.end()) return;
  const auto dial = std::move(found->second);
  dials_.erase(found);
  loop_.cancel(dial->timer);
  if (dial->looking_up && resolver_ != nullptr) resolver_->cancel(dial->lookup);
  loop_.forget(dial->socket.get());
}

void Dialer::resolve(Dial& dial) {
  if (resolver_ == nullptr) {
    auto made = Resolver::make(loop_, {});
    if (!made) return end_later(dial, {.why = made.error().text()});
    resolver_ = std::move(*made);
  }
  const DialId id = dial.id;
  dial.looking_up = true;
  dial.lookup = resolver_->lookup(dial.destination.name, [this, id](Resolver::Answer answer) {
    resolved(id, std::move(answer));
  });
}

void Dialer::resolved(DialId id, Resolver::Answer answer) {
  const auto found = dials_.find(id);
  if (found == dials_.end()) return;
  Dial& dial = *found->second;
  dial.looking_up = false;
  if (answer.failure != Resolver::Failure::none)
    return end(dial, std::unexpected(Unreached{answer.why}));
  check(dial, answer.addresses);
}

/// Drops what may not be reached; what is left is what is connected to.
void Dialer::check(Dial& dial, const std::vector<Address>& addresses) {
  const Destination& to = dial.destination;
  const HostAddresses& host = host_addresses();
  if (!host_known_) return end_later(dial, {.why = "the host's own addresses can't be read"});
  Usable usable =
      network::usable(to.rule->rule, plan_.private_, addresses, to.port, host, plan_.rules);
  if (usable.addresses.empty())
    return end_later(dial, {.why = std::move(usable.refused.why),
                            .refused_by_policy = true,
                            .allow_with = std::move(usable.refused.allow_with),
                            .options = std::move(usable.refused.options)});
  dial.addresses = std::move(usable.addresses);
  if (dial.addresses.size() > kMostTried) dial.addresses.resize(kMostTried);
  try_next(dial);
}

void Dialer::try_next(Dial& dial) {
  loop_.cancel(std::exchange(dial.timer, EventLoop::kNoTimer));
  loop_.forget(dial.socket.get());
  dial.socket.reset();
  while (dial.next < dial.addresses.size())
    if (connect_to(dial, dial.addresses[dial.next++])) return;
  end_later(dial, {.why = dial.last_failure});
}

/// Whether it is under way.
bool Dialer::connect_to(Dial& dial, const Address& address) {
  const bool stream = dial.destination.rule->rule.transport == Transport::tcp;
  const SocketAddress to(address, dial.destination.port);
  UniqueFd socket(::socket(domain_of(address.family),
                           (stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (stream && socket.valid()) (void)set_option(socket.get(), SOL_TCP, TCP_NODELAY, 1);
  if (!socket.valid() ||
      (::connect(socket.get(), to.data(), to.size()) != 0 && errno != EINPROGRESS)) {
    dial.last_failure = reason_of(errno, address);
    return false;
  }
  const DialId id = dial.id;
  if (!loop_.watch(socket.get(), EPOLLOUT, [this, id](std::uint32_t) { connected(id); })) {
    dial.last_failure = "the supervisor is short of memory";
    return false;
  }
  dial.socket = std::move(socket);
  const bool last = dial.next == dial.addresses.size();
  dial.timer = loop_.after(last ? kConnectTime : kOneOfMany, [this, id] { gave_up_waiting(id); });
  return true;
}

void Dialer::connected(DialId id) {
  Dial& dial = *dials_.at(id);
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(dial.socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    dial.last_failure = reason_of(error, dial.addresses[dial.next - 1]);
    return try_next(dial);
  }
  loop_.forget(dial.socket.get());
  end(dial, std::move(dial.socket));
}

void Dialer::gave_up_waiting(DialId id) {
  Dial& dial = *dials_.at(id);
  dial.timer = EventLoop::kNoTimer;
  const bool last = dial.next == dial.addresses.size();
  dial.last_failure = "timed out after " +
                      std::to_string((last ? kConnectTime : kOneOfMany).count()) + " s at " +
                      dial.addresses[dial.next - 1].text();
  try_next(dial);
}

/// Out of dial() nothing may be called back yet.
void Dialer::end_later(Dial& dial, Unreached why) {
  const DialId id = dial.id;
  dial.timer = loop_.after(0us, [this, id, why = std::move(why)] {
    Dial& over = *dials_.at(id);
    over.timer = EventLoop::kNoTimer;
    end(over, std::unexpected(why));
  });
}

void Dialer::end(Dial& dial, std::expected<UniqueFd, Unreached> answer) {
  const Reached reached = std::move(dial.reached);
  loop_.cancel(dial.timer);
  dials_.erase(dial.id);
  reached(std::move(answer));
}

}  // namespace sbx::network
