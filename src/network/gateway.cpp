#include "network/gateway.hpp"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/network_addresses.hpp"
#include "network/denials.hpp"
#include "network/socket_address.hpp"
#include "network/udp_service.hpp"
#include "policy/network_match.hpp"

namespace sbx::network {
namespace {

using policy::Family;
using policy::Transport;

constexpr int kDnsBacklog = 128;
/// What stands for a name never changes in a run; short, because programs outlive runs in
/// snapshots.
constexpr std::uint32_t kTtlSeconds = 60;

SocketRequest gateway_socket(int domain, int type, int protocol = 0) {
  return {
      .domain = domain, .type = type, .protocol = protocol, .in_gateway = true, .loopback_port = 0};
}

}  // namespace

struct Gateway::Served {
  Served(EventLoop& in, Gateway& gateway)
      : loop(in),
        dialer(in, gateway.plan_),
        tcp(in, gateway.plan_, dialer, gateway.tally_),
        udp(in, gateway.plan_, dialer, gateway.tally_, gateway.pool_.space()),
        attempts(in, [&gateway](const Attempts::Packet& packet) { gateway.seen(packet); }),
        dns(in, [&gateway](const dns::Query& query) { return gateway.answer(query); }) {}

  EventLoop& loop;
  Dialer dialer;
  TcpService tcp;
  UdpService udp;
  Attempts attempts;
  DnsService dns;
};

std::vector<SocketRequest> Gateway::requests(const plan::NetworkPlan& plan, bool ipv6) {
  std::vector<SocketRequest> requests{gateway_socket(AF_INET, SOCK_DGRAM),
                                      gateway_socket(AF_INET, SOCK_STREAM)};
  if (ipv6) {
    requests.push_back(gateway_socket(AF_INET6, SOCK_DGRAM));
    requests.push_back(gateway_socket(AF_INET6, SOCK_STREAM));
  }
  if (plan.named || plan.wide_rule() != nullptr)
    for (const SocketRequest& each : Attempts::requests(ipv6)) requests.push_back(each);
  for (const SocketRequest& each : Listeners::requests(plan.rules, ipv6)) requests.push_back(each);
  return requests;
}

Gateway::Gateway(const plan::NetworkPlan& plan, NetworkNamespace space)
    : plan_(plan),
      pool_(std::move(space)),
      names_(plan.rules),
      listeners_(pool_, plan.rules, names_) {}

Gateway::~Gateway() = default;

Result<std::unique_ptr<Gateway>> Gateway::make(const plan::NetworkPlan& plan,
                                               NetworkNamespace space,
                                               std::vector<UniqueFd> sockets, bool ipv6) {
  std::unique_ptr<Gateway> gateway(new Gateway(plan, std::move(space)));
  SBX_TRY(gateway->listen(std::move(sockets), ipv6));
  return gateway;
}

Status Gateway::listen(std::vector<UniqueFd> sockets, bool ipv6) {
  const auto whole =
      std::ranges::any_of(plan_.rules,
                          [](const policy::PlacedRule& placed) {
                            return placed.rule.transport == Transport::udp && placed.rule.is_wide();
                          })
          ? Attempts::Datagrams::whole
          : Attempts::Datagrams::headers;
  for (UniqueFd& socket : sockets) {
    int domain = 0;
    int type = 0;
    socklen_t size = sizeof domain;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &domain, &size);
    size = sizeof type;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_TYPE, &type, &size);
    if (type != SOCK_RAW) {
      pool_.add(domain, type, std::move(socket));
      continue;
    }
    SBX_TRY(Attempts::prepare(socket.get(), whole));
    raw_.push_back(std::move(socket));
  }
  SBX_TRY(bind_dns(Family::v4));
  if (ipv6) SBX_TRY(bind_dns(Family::v6));
  return listeners_.listen_for_addresses(ipv6);
}

/// On every address: whichever server the program asks, it asks the gateway.
Status Gateway::bind_dns(Family family) {
  UniqueFd udp = SBX_TRY(pool_.take(domain_of(family), SOCK_DGRAM));
  UniqueFd tcp = SBX_TRY(pool_.take(domain_of(family), SOCK_STREAM));
  for (const UniqueFd* socket : {&udp, &tcp}) {
    if (family == Family::v6) (void)set_option(socket->get(), SOL_IPV6, IPV6_V6ONLY, 1);
    (void)set_option(socket->get(), SOL_SOCKET, SO_REUSEADDR, 1);
    const SocketAddress any = SocketAddress::any(family, kDnsPort);
    if (::bind(socket->get(), any.data(), any.size()) != 0)
      return fail_errno(ErrorKind::setup, "setup-gateway", "cannot listen for DNS in the gateway");
  }
  if (::listen(tcp.get(), kDnsBacklog) != 0)
    return fail_errno(ErrorKind::setup, "setup-gateway", "cannot listen for DNS in the gateway");
  dns_udp_.push_back(std::move(udp));
  dns_tcp_.push_back(std::move(tcp));
  return {};
}

Status Gateway::attach(EventLoop& loop) {
  served_ = std::make_unique<Served>(loop, *this);
  for (UniqueFd& socket : dns_udp_) SBX_TRY(served_->dns.serve_udp(std::move(socket)));
  for (UniqueFd& socket : dns_tcp_) SBX_TRY(served_->dns.serve_tcp(std::move(socket)));
  // One that can't be watched is never served: nothing goes through it.
  listeners_.tell(
      [this](Listener& listener) {
        (void)(listener.transport == Transport::tcp ? served_->tcp.serve(listener)
                                                    : served_->udp.serve(listener));
      },
      [this](Listener& listener) {
        listener.transport == Transport::tcp ? served_->tcp.release(listener)
                                             : served_->udp.release(listener);
      });
  for (UniqueFd& socket : raw_) SBX_TRY(served_->attempts.watch(std::move(socket)));
  return {};
}

bool Gateway::sends() {
  if (served_ == nullptr) return false;
  served_->attempts.drain();  // datagrams that came before their listener
  return listeners_.anything_waits() || served_->tcp.sends() || served_->udp.sends();
}

void Gateway::detach() {
  if (served_ == nullptr) return;
  served_->tcp.count();
  served_->attempts.drain();
  if (const std::uint64_t unread = served_->attempts.unread(); plan_.named && unread > 0)
    tally_.deny({.kind = DenialKind::network, .what = "others", .rule = plan_.rule}, unread);
  for (const Listener& listener : listeners_.all()) served_->loop.forget(listener.socket.get());
  listeners_.tell({}, {});
  served_.reset();
}

/// Records a connection or datagram that the kernel refused, by name. One that has a listener was
/// not refused.
void Gateway::seen(const Attempts::Packet& packet) {
  const auto& [transport, address, port] = packet.to;
  const bool awaited = listeners_.has(transport, address, port);
  Listener* const opened = open(transport, address, port);
  // Nothing announced a datagram that is sent without connect(2): the first ones come this way.
  if (opened != nullptr && transport == Transport::udp && packet.came_at < opened->opened_at)
    served_->udp.take(*opened, packet.from, address, packet.data);
  if (awaited || opened != nullptr || !plan_.named) return;
  const Name* const name = names_.at(address);
  tally_.deny(name != nullptr ? refused_destination(plan_, transport, name->name, port)
                              : refused_address(plan_, transport, address, port));
}

void Gateway::expect(const policy::Address& address, std::uint16_t port) {
  for (const Transport transport : {Transport::tcp, Transport::udp})
    (void)open(transport, address, port);
}

Listener* Gateway::open(Transport transport, const policy::Address& address, std::uint16_t port) {
  auto opened = listeners_.open(transport, address, port);
  if (opened) return *opened;
  const Name* const name = names_.at(address);
  tally_.fail(name != nullptr ? name->name + ":" + std::to_string(port) : with_port(address, port),
              opened.error().text());
  return nullptr;
}

/// Allowed names stand for an address of their own; with the first answer their ports are open.
dns::Answer Gateway::answer(const dns::Query& query) {
  const Name* const name = query.name.empty() ? nullptr : names_.allow(query.name);
  if (name == nullptr) {
    Denial denial = refused_name(plan_, query.shown, query.name);
    if (names_.exhausted()) {
      denial.rule = "a limit of sbx: " + std::to_string(Names::kMost) + " names in a run";
      denial.allow_with.clear();
    }
    query.type == static_cast<std::uint16_t>(dns::Type::aaaa) ? tally_.deny_once(std::move(denial))
                                                              : tally_.deny(std::move(denial));
    return {.rcode = dns::Rcode::no_such_name, .address = {}, .ttl_seconds = 0};
  }
  if (auto listening = listeners_.listen_for(*name); !listening) {
    tally_.fail("name " + name->name, listening.error().text());
    return {.rcode = dns::Rcode::server_failure, .address = {}, .ttl_seconds = 0};
  }
  return dns::answer_for(query, name->address, kTtlSeconds);
}

}  // namespace sbx::network
