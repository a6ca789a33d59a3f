#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <list>
#include <string>

#include "network/dialer.hpp"
#include "network/listeners.hpp"
#include "network/socket_address.hpp"
#include "network/tcp_service.hpp"
#include "network/udp_service.hpp"
#include "policy/network_match.hpp"

/// The parts of the gateway one by one, in a network namespace of this process: real sockets, and
/// no sandbox.
namespace sbx::network {
namespace {

using policy::Address;
using policy::PlacedRule;
using policy::Transport;

/// Leaves the machine's network for an empty one, whose loopback interface is up.
bool enter_empty_network() {
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  return ::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

std::vector<PlacedRule> parsed(std::initializer_list<const char*> texts) {
  std::vector<PlacedRule> rules;
  for (const char* text : texts) {
    auto rule = policy::parse_network_rule(text);
    EXPECT_TRUE(rule) << text << ": " << (rule ? "" : rule.error().message);
    if (rule) rules.push_back({*rule, {}});
  }
  return rules;
}

UniqueFd socket_of(int type) {
  return UniqueFd(::socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

const Address kLoopback = Address::v4(127, 0, 0, 1);

/// A server or listener on a port that the kernel chooses.
UniqueFd bound(int type, std::uint16_t& port) {
  UniqueFd socket = socket_of(type);
  const SocketAddress any(kLoopback, 0);
  EXPECT_EQ(::bind(socket.get(), any.data(), any.size()), 0);
  if (type == SOCK_STREAM) {
    EXPECT_EQ(::listen(socket.get(), 16), 0);
  }
  port = local_address(socket.get()).port();
  return socket;
}

UniqueFd connected(int type, const Address& address, std::uint16_t port) {
  UniqueFd socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  const SocketAddress to(address, port);
  EXPECT_EQ(::connect(socket.get(), to.data(), to.size()), 0) << port;
  return socket;
}

void send_text(int socket, std::string_view text) {
  EXPECT_EQ(::send(socket, text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

/// What is there; "EAGAIN", "ECONNRESET" and the like where there is nothing; "" at the end.
std::string received(int socket) {
  char room[4096];
  const ssize_t got = ::recv(socket, room, sizeof room, MSG_DONTWAIT);
  return got < 0 ? strerrorname_np(errno) : std::string(room, static_cast<std::size_t>(got));
}

class GatewayTest : public testing::Test {
 protected:
  void SetUp() override {
    static const bool kIsAlone = enter_empty_network();
    if (!kIsAlone) GTEST_SKIP() << "no network namespace can be made here";
  }

  /// One of a rule about host.sbx.internal, which leads to the loopback address.
  Listener& listener(int type, std::uint16_t server_port) {
    std::uint16_t own_port = 0;
    UniqueFd socket = bound(type, own_port);
    (void)set_option(socket.get(), SOL_IP, IP_PKTINFO, 1);
    listeners_.push_back({.socket = std::move(socket),
                          .transport = type == SOCK_STREAM ? Transport::tcp : Transport::udp,
                          .port = server_port,
                          .name = &name_,
                          .rule = &plan_.rules[type == SOCK_STREAM ? 0 : 1]});
    return listeners_.back();
  }
  std::uint16_t port_of(const Listener& each) { return local_address(each.socket.get()).port(); }

  /// Turns the loop until `is_there`.
  void run_until(const std::function<bool()>& is_there) {
    while (!is_there()) ASSERT_TRUE(loop_.run_once());
  }
  std::string await_text(int socket) {
    std::string text;
    run_until([&] { return (text = received(socket)) != "EAGAIN"; });
    return text;
  }
  UniqueFd await_connection(int server) {
    UniqueFd socket;
    run_until([&] {
      socket = UniqueFd(::accept4(server, nullptr, nullptr, SOCK_CLOEXEC));
      return socket.valid();
    });
    return socket;
  }
  Outcome outcome() {
    Outcome found;
    tally_.put_into(found);
    return found;
  }

  EventLoop loop_ = std::move(*EventLoop::make());
  plan::NetworkPlan plan_{.rules = parsed({"host.sbx.internal:*", "udp://host.sbx.internal:*"})};
  Name name_{.name = "host.sbx.internal", .address = Address::v4(198, 18, 0, 5), .rules = {}};
  std::list<Listener> listeners_;
  Tally tally_;
  Dialer dialer_{loop_, plan_};
};

// ---- Listeners ----

class ListenersTest : public GatewayTest {
 protected:
  void use(std::initializer_list<const char*> texts, int sockets) {
    rules_ = parsed(texts);
    for (int i = 0; i < sockets; ++i) {
      pool_.add(AF_INET, SOCK_STREAM, socket_of(SOCK_STREAM));
      pool_.add(AF_INET, SOCK_DGRAM, socket_of(SOCK_DGRAM));
    }
    names_.emplace(rules_);
    opened_.emplace(pool_, rules_, *names_);
  }

  std::vector<PlacedRule> rules_;
  SocketPool pool_{NetworkNamespace(UniqueFd(), 0, 0)};
  std::optional<Names> names_;
  std::optional<Listeners> opened_;
};

const Address kTen = Address::v4(10, 1, 2, 3);

TEST_F(ListenersTest, AnAddressHasASocketForEachOfItsPorts) {
  use({"10.1.2.3:80,443", "udp://10.1.2.3:5000"}, 4);
  ASSERT_TRUE(opened_->listen_for_addresses(false));
  EXPECT_EQ(opened_->all().size(), 3U);
  EXPECT_TRUE(opened_->has(Transport::tcp, kTen, 80));
  EXPECT_TRUE(opened_->has(Transport::tcp, kTen, 443));
  EXPECT_TRUE(opened_->has(Transport::udp, kTen, 5000));
  EXPECT_FALSE(opened_->has(Transport::tcp, kTen, 5000));
  EXPECT_FALSE(opened_->has(Transport::tcp, Address::v4(10, 1, 2, 4), 80));
  EXPECT_TRUE(opened_->has(Transport::udp, kTen, 53)) << "the gateway's own DNS";
}

TEST_F(ListenersTest, APrefixListensOnEveryAddressAndShowsWhatWaits) {
  use({"10.1.0.0/16:8080"}, 2);
  ASSERT_TRUE(opened_->listen_for_addresses(false));
  EXPECT_TRUE(opened_->has(Transport::tcp, kTen, 8080));
  EXPECT_FALSE(opened_->anything_waits());
  const UniqueFd client = connected(SOCK_STREAM, Address::v4(127, 9, 8, 7), 8080);
  EXPECT_TRUE(opened_->anything_waits());
}

TEST_F(ListenersTest, ANameIsListenedForOnceItIsResolved) {
  use({"*.example.org:80", "udp://a.example.org:5000"}, 4);
  ASSERT_TRUE(opened_->listen_for_addresses(false));
  EXPECT_TRUE(opened_->all().empty());
  const Name* const name = names_->allow("a.example.org");
  ASSERT_NE(name, nullptr);
  int told = 0;
  opened_->tell([&told](Listener&) { ++told; }, {});
  ASSERT_TRUE(opened_->listen_for(*name));
  ASSERT_TRUE(opened_->listen_for(*name));
  EXPECT_EQ(told, 2);
  EXPECT_TRUE(opened_->has(Transport::tcp, name->address, 80));
  EXPECT_TRUE(opened_->has(Transport::udp, name->address, 5000));
}

TEST_F(ListenersTest, OfARuleWithManyPortsTheOldestGivesWay) {
  use({"10.1.2.3:*"}, static_cast<int>(Listeners::kMostOpened) + 2);
  ASSERT_TRUE(opened_->listen_for_addresses(false));
  EXPECT_TRUE(opened_->all().empty());
  std::vector<std::uint16_t> closed;
  opened_->tell([](Listener&) {}, [&closed](Listener& each) { closed.push_back(each.port); });
  const auto open = [this](std::size_t port) {
    return opened_->open(Transport::tcp, kTen, static_cast<std::uint16_t>(port)).value_or(nullptr);
  };
  Listener* const first = open(1000);
  ASSERT_NE(first, nullptr);
  for (std::size_t i = 1; i < Listeners::kMostOpened; ++i) ASSERT_NE(open(1000 + i), nullptr);
  EXPECT_EQ(open(1000), first) << "asked for again: the youngest";
  ASSERT_NE(open(1000 + Listeners::kMostOpened), nullptr);
  EXPECT_THAT(closed, testing::ElementsAre(1001));
  EXPECT_EQ(opened_->open(Transport::tcp, Address::v4(10, 9, 9, 9), 80).value_or(first), nullptr);
}

// ---- TCP ----

class TcpServiceTest : public GatewayTest {
 protected:
  TcpService service_{loop_, plan_, dialer_, tally_};
};

TEST_F(TcpServiceTest, BytesPassBothWaysAndAreCounted) {
  std::uint16_t port = 0;
  const UniqueFd server = bound(SOCK_STREAM, port);
  Listener& entry = listener(SOCK_STREAM, port);
  ASSERT_TRUE(service_.serve(entry));
  const UniqueFd client = connected(SOCK_STREAM, kLoopback, port_of(entry));
  send_text(client.get(), "question");
  const UniqueFd peer = await_connection(server.get());
  EXPECT_EQ(await_text(peer.get()), "question");
  send_text(peer.get(), "answer");
  EXPECT_EQ(await_text(client.get()), "answer");
  ::shutdown(client.get(), SHUT_WR);
  EXPECT_EQ(await_text(peer.get()), "") << "the end of one direction is passed on";
  send_text(peer.get(), "more");
  EXPECT_EQ(await_text(client.get()), "more");
  service_.count();
  const Outcome counted = outcome();
  ASSERT_EQ(counted.network_used.size(), 1U);
  EXPECT_EQ(counted.network_used[0].connections, 1U);
  EXPECT_EQ(counted.network_used[0].bytes_out, 8U);
  EXPECT_EQ(counted.network_used[0].bytes_in, 10U);
  service_.release(entry);
}

TEST_F(TcpServiceTest, WhatAClientSentBeforeItLeftIsPassedOn) {
  std::uint16_t port = 0;
  const UniqueFd server = bound(SOCK_STREAM, port);
  Listener& entry = listener(SOCK_STREAM, port);
  ASSERT_TRUE(service_.serve(entry));
  UniqueFd client = connected(SOCK_STREAM, kLoopback, port_of(entry));
  send_text(client.get(), "fire and forget");
  client.reset();
  const UniqueFd peer = await_connection(server.get());
  EXPECT_TRUE(service_.sends());
  run_until([this] { return !service_.sends(); });
  EXPECT_EQ(received(peer.get()), "fire and forget");
  EXPECT_EQ(received(peer.get()), "");
  service_.release(entry);
}

TEST_F(TcpServiceTest, AServerThatRefusesIsAFailureAndAReset) {
  std::uint16_t port = 0;
  bound(SOCK_STREAM, port).reset();
  Listener& entry = listener(SOCK_STREAM, port);
  ASSERT_TRUE(service_.serve(entry));
  const UniqueFd client = connected(SOCK_STREAM, kLoopback, port_of(entry));
  EXPECT_EQ(await_text(client.get()), "ECONNRESET");
  const Outcome counted = outcome();
  ASSERT_EQ(counted.network_failures.size(), 1U);
  EXPECT_THAT(counted.network_failures[0].why, testing::HasSubstr("refused"));
  EXPECT_TRUE(counted.network_used.empty());
  service_.release(entry);
}

TEST_F(TcpServiceTest, AnAddressWithoutARuleIsResetAndNamed) {
  std::uint16_t port = 0;
  Listener& entry = listener(SOCK_STREAM, port);
  entry.name = nullptr;  // as of a prefix: each destination decides
  entry.rule = nullptr;
  entry.port = port_of(entry);
  ASSERT_TRUE(service_.serve(entry));
  const UniqueFd client = connected(SOCK_STREAM, kLoopback, entry.port);
  EXPECT_EQ(await_text(client.get()), "ECONNRESET");
  const Outcome counted = outcome();
  ASSERT_EQ(counted.denials.size(), 1U);
  EXPECT_EQ(counted.denials[0].what, "tcp 127.0.0.1:" + std::to_string(entry.port));
  service_.release(entry);
}

// ---- UDP ----

class UdpServiceTest : public GatewayTest {
 protected:
  NetworkNamespace space_{UniqueFd(), 0, 0};
  UdpService service_{loop_, plan_, dialer_, tally_, space_};
};

TEST_F(UdpServiceTest, DatagramsPassBothWaysAndAreCounted) {
  std::uint16_t port = 0;
  const UniqueFd server = bound(SOCK_DGRAM, port);
  Listener& entry = listener(SOCK_DGRAM, port);
  ASSERT_TRUE(service_.serve(entry));
  const UniqueFd client = connected(SOCK_DGRAM, kLoopback, port_of(entry));
  send_text(client.get(), "ping");
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  char room[16];
  ssize_t got = -1;
  run_until([&] {
    got = ::recvfrom(server.get(), room, sizeof room, 0, reinterpret_cast<sockaddr*>(&from), &size);
    return got >= 0;
  });
  EXPECT_EQ(std::string(room, static_cast<std::size_t>(got)), "ping");
  ASSERT_EQ(::sendto(server.get(), "pong!", 5, 0, reinterpret_cast<sockaddr*>(&from), size), 5);
  EXPECT_EQ(await_text(client.get()), "pong!");
  const Outcome counted = outcome();
  ASSERT_EQ(counted.network_used.size(), 1U);
  EXPECT_EQ(counted.network_used[0].bytes_out, 4U);
  EXPECT_EQ(counted.network_used[0].bytes_in, 5U);
  service_.release(entry);
}

TEST_F(UdpServiceTest, DatagramsWaitUntilTheirDestinationIsKnown) {
  std::uint16_t port = 0;
  const UniqueFd server = bound(SOCK_DGRAM, port);
  Listener& entry = listener(SOCK_DGRAM, port);
  const std::string text = "early";
  service_.take(entry, SocketAddress(kLoopback, 9), kLoopback,
                std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
  EXPECT_TRUE(service_.sends());
  EXPECT_EQ(received(server.get()), "EAGAIN");
  run_until([this] { return !service_.sends(); });
  EXPECT_EQ(await_text(server.get()), text);
  service_.release(entry);
}

}  // namespace
}  // namespace sbx::network
