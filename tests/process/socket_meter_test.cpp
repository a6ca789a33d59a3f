#include "supervise/meters/socket_meter.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace sbx::test {
namespace {

using supervise::SocketMeter;

constexpr std::uint64_t kRoom = std::uint64_t{1} << 30;

UniqueFd make_socket(int domain, int type, int protocol = 0) {
  return UniqueFd(::socket(domain, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol));
}

struct Pair {
  UniqueFd left;
  UniqueFd right;
};
Pair make_pair(int type) {
  int ends[2] = {-1, -1};
  (void)!::socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// Fills a socket until it is full, with at most `most` bytes; returns the number accepted.
std::uint64_t fill(const UniqueFd& socket, std::size_t each, std::uint64_t most = 1 << 20) {
  const std::string block(each, 'x');
  std::uint64_t sent = 0;
  while (sent + each <= most) {
    const ssize_t got = ::send(socket.get(), block.data(), block.size(), MSG_NOSIGNAL);
    if (got <= 0) break;
    sent += static_cast<std::uint64_t>(got);
  }
  return sent;
}

/// A socket bound to the loopback interface, and one connected to it.
Pair connected(int type) {
  Pair pair{make_socket(AF_INET, type), make_socket(AF_INET, type)};
  sockaddr_in place{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof place;
  if (::bind(pair.right.get(), reinterpret_cast<sockaddr*>(&place), size) != 0) return {};
  if (type == SOCK_STREAM && ::listen(pair.right.get(), 1) != 0) return {};
  (void)::getsockname(pair.right.get(), reinterpret_cast<sockaddr*>(&place), &size);
  if (::connect(pair.left.get(), reinterpret_cast<sockaddr*>(&place), size) != 0 &&
      errno != EINPROGRESS)
    return {};
  return pair;
}

/// A meter for this process's network namespace.
class Metered {
 public:
  Metered()
      : diagnosis_(make_socket(AF_NETLINK, SOCK_RAW, SocketMeter::request().protocol)),
        meter_({.fd = diagnosis_.get(), .sockets = 1, .tcp = 0}, ::getpid(), -1) {}
  std::uint64_t bytes() { return meter_.look_at_all(kRoom); }
  SocketMeter& meter() { return meter_; }

 private:
  UniqueFd diagnosis_;
  SocketMeter meter_;
};

/// Runs in a new network namespace with a loopback interface and no sockets but those of the test.
/// Exit status 77: the kernel permits no such namespace here.
template <typename Test>
void in_own_network(Test test) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::unshare(::geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) != 0) ::_exit(77);
    const UniqueFd any = make_socket(AF_INET, SOCK_DGRAM);
    ifreq loopback{.ifr_ifrn = {"lo"}, .ifr_ifru = {}};
    loopback.ifr_flags = IFF_UP;
    if (::ioctl(any.get(), SIOCSIFFLAGS, &loopback) != 0) ::_exit(77);
    test();
    (void)std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no network namespace can be made";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

/// The expected count for `pair` after `sent` bytes: at least these, and at most the kernel's
/// overhead for small packets more.
void expect_counted(Metered& metered, std::uint64_t before, std::uint64_t sent) {
  ASSERT_GT(sent, 32'768U);
  const std::uint64_t after = metered.bytes();
  EXPECT_GE(after, before + sent);
  EXPECT_LE(after, before + 8 * sent + 65'536);
}

TEST(SocketMeter, BytesInAStreamOfUnixCountUntilTheyAreRead) {
  in_own_network([] {
    Metered metered;
    const Pair pair = make_pair(SOCK_STREAM);
    const std::uint64_t before = metered.bytes();
    expect_counted(metered, before, fill(pair.left, 4096));
    char block[65'536];
    while (::recv(pair.right.get(), block, sizeof block, 0) > 0) continue;
    EXPECT_EQ(metered.bytes(), before);
  });
}

TEST(SocketMeter, DatagramsOfUnixCount) {
  in_own_network([] {
    Metered metered;
    const Pair pair = make_pair(SOCK_DGRAM);
    const std::uint64_t before = metered.bytes();
    expect_counted(metered, before, fill(pair.left, 16'384));
  });
}

TEST(SocketMeter, DatagramsOfUdpCount) {
  in_own_network([] {
    Metered metered;
    const Pair pair = connected(SOCK_DGRAM);
    ASSERT_TRUE(pair.left.valid());
    const std::uint64_t before = metered.bytes();
    expect_counted(metered, before, fill(pair.left, 1024, 65'536));
  });
}

TEST(SocketMeter, BytesInATcpConnectionCount) {
  in_own_network([] {
    Metered metered;
    const Pair pair = connected(SOCK_STREAM);
    ASSERT_TRUE(pair.left.valid());
    const UniqueFd accepted(::accept4(pair.right.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(accepted.valid());
    const std::uint64_t before = metered.bytes();
    expect_counted(metered, before, fill(pair.left, 4096));
  });
}

TEST(SocketMeter, MessagesOfNetlinkCount) {
  in_own_network([] {
    Metered metered;
    const UniqueFd receiver = make_socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK);
    const UniqueFd sender = make_socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK);
    sockaddr_nl place{.nl_family = AF_NETLINK};
    socklen_t size = sizeof place;
    ASSERT_EQ(::bind(receiver.get(), reinterpret_cast<sockaddr*>(&place), size), 0);
    ASSERT_EQ(::getsockname(receiver.get(), reinterpret_cast<sockaddr*>(&place), &size), 0);
    ASSERT_EQ(::connect(sender.get(), reinterpret_cast<sockaddr*>(&place), size), 0);
    const std::uint64_t before = metered.bytes();
    expect_counted(metered, before, fill(sender, 4096));
  });
}

TEST(SocketMeter, AFreshListingSeesWhatGrewSinceTheLast) {
  in_own_network([] {
    Metered metered;
    const Pair pair = make_pair(SOCK_STREAM);
    std::uint64_t known = metered.bytes();
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t sent = fill(pair.left, 4096, 32'768);
      ASSERT_EQ(sent, 32'768U);
      const std::uint64_t now = metered.bytes();
      EXPECT_GE(now, known + sent);
      known = now;
    }
  });
}

TEST(SocketMeter, ALookMayUseTheLastListingAndALookAtAllMayNot) {
  in_own_network([] {
    Metered metered;
    const Pair pair = make_pair(SOCK_STREAM);
    const std::uint64_t before = metered.bytes();
    const std::uint64_t sent = fill(pair.left, 4096, 65'536);
    EXPECT_GE(metered.meter().look(kRoom), before);  // not before the share of listing allows it
    EXPECT_GE(metered.bytes(), before + sent);
  });
}

TEST(SocketMeter, WithoutADiagnosisNothingIsCounted) {
  SocketMeter meter({}, ::getpid(), -1);
  const Pair pair = make_pair(SOCK_STREAM);
  ASSERT_GT(fill(pair.left, 4096), 0U);
  EXPECT_EQ(meter.look(kRoom), 0U);
}

}  // namespace
}  // namespace sbx::test
