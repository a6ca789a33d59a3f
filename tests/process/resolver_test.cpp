#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/sys.hpp"
#include "network/dns_message.hpp"
#include "network/resolver.hpp"

namespace sbx::network {
namespace {

using namespace std::chrono_literals;
using policy::Address;

/// A DNS server on the loopback interface, in the test's event loop.
class Server {
 public:
  explicit Server(EventLoop& loop) : loop_(loop) {
    socket_ = UniqueFd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in place{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    if (::bind(socket_.get(), reinterpret_cast<sockaddr*>(&place), sizeof place) != 0) std::abort();
    socklen_t size = sizeof place;
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&place), &size);
    port_ = ntohs(place.sin_port);
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&place), sizeof place) != 0 ||
        ::listen(listener_.get(), 5) != 0)
      std::abort();
    (void)loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t) { datagram(); });
    (void)loop_.watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { stream(); });
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    loop_.forget(socket_.get());
    loop_.forget(listener_.get());
    if (client_.valid()) loop_.forget(client_.get());
  }

  [[nodiscard]] std::string place() const { return "127.0.0.1:" + std::to_string(port_); }

  std::map<std::string, std::vector<std::string>> addresses;
  std::map<std::string, dns::Rcode> errors;
  std::set<std::string> silent;    ///< "name" or "name AAAA"
  std::set<std::string> over_tcp;  ///< answered with TC over UDP
  std::vector<std::string> asked;  ///< "name A"

 private:
  void datagram() {
    std::array<std::uint8_t, 2048> bytes;
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    const ssize_t got = ::recvfrom(socket_.get(), bytes.data(), bytes.size(), 0,
                                   reinterpret_cast<sockaddr*>(&from), &size);
    if (got <= 0) return;
    auto reply = answer(std::span(bytes).first(static_cast<std::size_t>(got)), false);
    if (!reply.empty())
      ::sendto(socket_.get(), reply.data(), reply.size(), 0, reinterpret_cast<sockaddr*>(&from),
               size);
  }

  void stream() {
    client_ = UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client_.valid()) return;
    (void)loop_.watch(client_.get(), EPOLLIN, [this](std::uint32_t) {
      std::array<std::uint8_t, 512> bytes;
      const ssize_t got = ::recv(client_.get(), bytes.data(), bytes.size(), 0);
      const bool more =
          got > 0 && stream_.add(std::span(bytes).first(static_cast<std::size_t>(got)));
      const auto message = stream_.next();
      if (message) {
        const auto reply = dns::framed(answer(*message, true));
        (void)!::send(client_.get(), reply.data(), reply.size(), MSG_NOSIGNAL);
      }
      if (more) return;
      loop_.forget(client_.get());
      client_.reset();
    });
  }

  dns::Bytes answer(std::span<const std::uint8_t> message, bool tcp) {
    const auto query = dns::parse_query(message);
    if (!query) return {};
    const bool v6 = query->type == 28;
    const std::string kind = query->name + (v6 ? " AAAA" : " A");
    asked.push_back(kind);
    if (silent.contains(query->name) || silent.contains(kind)) return {};
    if (errors.contains(query->name))
      return dns::write_answer(*query, {.rcode = errors[query->name]});
    if (!addresses.contains(query->name))
      return dns::write_answer(*query, {.rcode = dns::Rcode::no_such_name});
    std::vector<Address> found;
    for (const std::string& text : addresses[query->name]) {
      const auto one = v6 ? policy::parse_v6(text) : policy::parse_v4(text);
      if (one) found.push_back(*one);
    }
    dns::Bytes reply =
        dns::write_answer(*query, found.empty() ? dns::Answer{} : dns::Answer{.address = found[0]});
    if (!tcp && over_tcp.contains(query->name)) {
      reply = dns::write_answer(*query, {});
      reply[2] |= 2;  // TC
    }
    return reply;
  }

  EventLoop& loop_;
  UniqueFd socket_;
  UniqueFd listener_;
  UniqueFd client_;
  dns::Stream stream_;
  unsigned port_ = 0;
};

class ResolverTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loop = EventLoop::make();
    ASSERT_TRUE(loop);
    loop_.emplace(std::move(*loop));
    server_.emplace(*loop_);
    make(5000ms, server_->place());
  }
  void TearDown() override {
    resolver_.reset();
    server_.reset();
  }
  void make(std::chrono::milliseconds timeout, const std::string& servers) {
    resolver_.reset();
    auto resolver = Resolver::make(*loop_, {.timeout = timeout, .servers = servers});
    ASSERT_TRUE(resolver) << resolver.error().message;
    resolver_ = std::move(*resolver);
  }
  Resolver::Answer look_up(const std::string& name) {
    std::optional<Resolver::Answer> answer;
    resolver_->lookup(name, [&](Resolver::Answer given) { answer = std::move(given); });
    EXPECT_FALSE(answer) << "called back before lookup() returned";
    while (!answer) {
      if (!loop_->run_once()) return {};
    }
    return *answer;
  }
  static std::string text(const Resolver::Answer& answer) {
    std::string text = answer.why;
    for (const Address& each : answer.addresses) text += (text.empty() ? "" : " ") + each.text();
    return text;
  }

  std::optional<EventLoop> loop_;
  std::optional<Server> server_;
  std::unique_ptr<Resolver> resolver_;
};

TEST_F(ResolverTest, GivesTheAddressesOfBothFamilies) {
  server_->addresses["both.example"] = {"192.0.2.1", "2001:db8::1"};
  server_->addresses["four.example"] = {"192.0.2.4"};
  server_->addresses["six.example"] = {"2001:db8::6"};
  auto both = look_up("both.example");
  EXPECT_EQ(both.failure, Resolver::Failure::none);
  EXPECT_EQ(both.addresses.size(), 2U);
  EXPECT_EQ(text(look_up("four.example")), "192.0.2.4");
  EXPECT_EQ(text(look_up("six.example")), "2001:db8::6");
}

TEST_F(ResolverTest, FailuresAreNamed) {
  server_->addresses["empty.example"] = {};
  server_->errors["broken.example"] = dns::Rcode::server_failure;
  const auto none = look_up("none.example");
  EXPECT_EQ(none.failure, Resolver::Failure::no_such_name);
  EXPECT_EQ(none.why, "no such name");
  EXPECT_EQ(look_up("empty.example").why, "the name has no address");
  EXPECT_EQ(look_up("broken.example").failure, Resolver::Failure::no_answer);
  EXPECT_EQ(look_up("broken.example").why, "no DNS server of this machine answers");
}

TEST_F(ResolverTest, ASilentServerTimesOut) {
  make(300ms, server_->place());
  server_->silent.insert("silent.example");
  const std::uint64_t began = sys::now_microseconds();
  const auto answer = look_up("silent.example");
  EXPECT_EQ(answer.failure, Resolver::Failure::timed_out);
  EXPECT_EQ(answer.why, "timed out after 300 ms");
  EXPECT_GE(sys::now_microseconds() - began, 300'000U);
  EXPECT_LT(sys::now_microseconds() - began, 3'000'000U);
}

TEST_F(ResolverTest, AFamilyThatIsNotAnsweredDelaysTheOtherOnlyALittle) {
  server_->addresses["half.example"] = {"192.0.2.9"};
  server_->silent.insert("half.example AAAA");
  const std::uint64_t began = sys::now_microseconds();
  EXPECT_EQ(text(look_up("half.example")), "192.0.2.9");
  EXPECT_LT(sys::now_microseconds() - began, 1'000'000U);
}

TEST_F(ResolverTest, NobodyThereIsNamed) {
  std::string closed;
  {
    const Server gone(*loop_);
    closed = gone.place();
  }
  make(900ms, closed);
  const auto answer = look_up("a.example");
  EXPECT_EQ(answer.failure, Resolver::Failure::no_answer);
  EXPECT_EQ(answer.why, "no DNS server of this machine answers");
}

TEST_F(ResolverTest, ATruncatedAnswerIsAskedForOverTcp) {
  server_->addresses["large.example"] = {"192.0.2.7"};
  server_->over_tcp.insert("large.example");
  EXPECT_EQ(text(look_up("large.example")), "192.0.2.7");
}

TEST_F(ResolverTest, NamesAreAbsolute) {
  ::setenv("LOCALDOMAIN", "example", 1);
  ::setenv("RES_OPTIONS", "ndots:5", 1);
  make(5000ms, server_->place());
  server_->addresses["db.example"] = {"192.0.2.1"};
  EXPECT_EQ(look_up("db").why, "no such name");
  EXPECT_EQ(server_->asked, (std::vector<std::string>{"db A", "db AAAA"}));
  ::unsetenv("LOCALDOMAIN");
  ::unsetenv("RES_OPTIONS");
}

TEST_F(ResolverTest, ManyAtATimeEachGetTheirOwnAnswer) {
  int right = 0;
  constexpr int kMany = 100;
  for (int i = 0; i < kMany; ++i)
    server_->addresses["n" + std::to_string(i) + ".example"] = {"192.0.2." + std::to_string(i)};
  int over = 0;
  for (int i = 0; i < kMany; ++i) {
    resolver_->lookup("n" + std::to_string(i) + ".example", [&, i](const Resolver::Answer& answer) {
      ++over;
      right += text(answer) == "192.0.2." + std::to_string(i) ? 1 : 0;
    });
  }
  while (over < kMany) ASSERT_TRUE(loop_->run_once());
  EXPECT_EQ(right, kMany);
}

TEST_F(ResolverTest, ACancelledLookupIsNotHeardOf) {
  server_->addresses["a.example"] = {"192.0.2.1"};
  bool called = false;
  const auto id = resolver_->lookup("a.example", [&](const Resolver::Answer&) { called = true; });
  const auto within =
      resolver_->lookup("a.example", [&](const Resolver::Answer&) { called = true; });
  resolver_->lookup("none.example", [&](const Resolver::Answer&) { resolver_->cancel(within); });
  resolver_->cancel(id);
  resolver_->cancel(id);
  resolver_->cancel(12345);
  (void)look_up("later.example");
  // `within` may have been answered before it was cancelled; `id` never is.
  called = false;
  (void)look_up("later.example");
  EXPECT_FALSE(called);
}

TEST_F(ResolverTest, EndsWithLookupsUnderWay) {
  server_->silent.insert("silent.example");
  bool called = false;
  resolver_->lookup("silent.example", [&](const Resolver::Answer&) { called = true; });
  ASSERT_TRUE(loop_->run_once());
  resolver_.reset();
  loop_->after(100ms, [] {});
  ASSERT_TRUE(loop_->run_once());
  EXPECT_FALSE(called);
}

/// Runs `body` in a mount namespace where /etc/hosts contains `hosts`; returns 77 if that is
/// impossible.
int with_hosts(const std::string& hosts, const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const uid_t uid = ::geteuid();
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(77);
    (void)sys::write_file("/proc/self/setgroups", "deny");
    if (!sys::write_file("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1")) ::_exit(77);
    char name[] = "/tmp/sbx-hosts-XXXXXX";
    const UniqueFd file(::mkstemp(name));
    (void)sys::write_all(file.get(), hosts);
    if (::mount(name, "/etc/hosts", nullptr, MS_BIND, nullptr) != 0) {
      ::unlink(name);
      ::_exit(77);
    }
    ::unlink(name);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

TEST_F(ResolverTest, ANameOfTheHostsFileHasTheAddressesThereAndNoOthers) {
  server_->addresses["pinned.example"] = {"192.0.2.1", "2001:db8::1"};
  server_->addresses["other.example"] = {"192.0.2.2"};
  const int status = with_hosts("10.0.0.9 x pinned.example\n", [this] {
    make(5000ms, server_->place());
    if (text(look_up("pinned.example")) != "10.0.0.9") return 1;
    if (!server_->asked.empty()) return 2;
    return text(look_up("other.example")) == "192.0.2.2" ? 0 : 3;
  });
  if (status == 77) GTEST_SKIP() << "no user namespace here";
  EXPECT_EQ(status, 0);
}

TEST(ResolverOptions, ServersThatAreNoneAreAnError) {
  auto loop = EventLoop::make();
  ASSERT_TRUE(loop);
  const auto resolver = Resolver::make(*loop, {.timeout = 1000ms, .servers = "nowhere"});
  ASSERT_FALSE(resolver);
  EXPECT_EQ(resolver.error().code, "no-resolver");
}

}  // namespace
}  // namespace sbx::network
