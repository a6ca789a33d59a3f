#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/message.hpp"
#include "session/connections.hpp"
#include "session_fixture.hpp"

namespace sbx::session {
namespace {

struct ConnectionsTest : testing::Test {
  EventLoop loop = std::move(*EventLoop::make());
  int used = 0;
  std::vector<PendingRequest> requests;
  Connections connections{
      loop,
      {.used = [this] { ++used; },
       .request =
           [this](protocol::Request request, Asker client) {
             requests.push_back({.request = std::move(request), .client = std::move(client)});
           }}};
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t size = sizeof address;

  void SetUp() override {
    UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    // The kernel chooses a name, unix(7).
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t)), 0);
    ASSERT_EQ(::listen(socket.get(), 200), 0);
    ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    ASSERT_TRUE(connections.begin(std::move(socket)));
  }
  [[nodiscard]] UniqueFd connect() const {
    UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    return socket;
  }
  [[nodiscard]] static std::string error_for(const UniqueFd& socket) {
    auto packet = protocol::receive(socket.get());
    return packet ? protocol::error_from(packet->body["error"]).code : "gone";
  }
  void turn(int times = 1) {
    for (int i = 0; i < times; ++i) ASSERT_TRUE(loop.run_once());
  }
};

TEST_F(ConnectionsTest, ARequestComesWithItsClientAndItsDescriptors) {
  const UniqueFd client = connect();
  const int fd = client.get();
  ASSERT_TRUE(protocol::send(fd, protocol::WaitRequest{.call = 3}, std::span(&fd, 1)));
  turn(2);
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(std::get<protocol::WaitRequest>(requests[0].request).call, 3U);
  EXPECT_EQ(requests[0].client.fds.size(), 1U);
  EXPECT_EQ(used, 1);
  EXPECT_FALSE(connections.has_any());
}

TEST_F(ConnectionsTest, WhatIsNoRequestIsAnsweredWithAnError) {
  const UniqueFd other = connect();
  ASSERT_TRUE(protocol::send(other.get(), Json{{"op", "dance"}}));
  turn(2);
  EXPECT_EQ(error_for(other), "bad-message");
  const UniqueFd later = connect();
  const std::string packet = "\3\xA0";  // of another version
  ASSERT_TRUE(sys::send_message(later.get(), std::as_bytes(std::span(packet)), {}));
  turn(2);
  EXPECT_EQ(error_for(later), "bad-message");
  EXPECT_TRUE(requests.empty());
}

TEST_F(ConnectionsTest, TheOldestOfManySilentOnesGoes) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 128; ++i) silent.push_back(connect());
  turn(2);  // 64 at once
  const UniqueFd last = connect();
  turn();
  EXPECT_EQ(error_for(silent.front()), "gone");
  ASSERT_TRUE(protocol::send(last.get(), protocol::InfoRequest{}));
  ASSERT_TRUE(protocol::send(silent.back().get(), protocol::InfoRequest{}));
  while (requests.size() < 2) turn();
}

TEST_F(ConnectionsTest, AFollowerIsRememberedUntilItAsks) {
  TestClient client;
  ASSERT_TRUE(connections.await_follower(client.connection()));
  EXPECT_TRUE(connections.has_followers());
  ASSERT_TRUE(protocol::send(client.socket().get(), protocol::LogsRequest{.call = 1}));
  turn();
  EXPECT_FALSE(connections.has_followers());
  EXPECT_EQ(requests.size(), 1U);
}

/// The client learns that at once, and the loop goes on.
TEST_F(ConnectionsTest, WithoutDescriptorsOneIsTurnedAway) {
  const UniqueFd silent = connect();
  turn();
  ASSERT_TRUE(connections.has_any());
  const UniqueFd client = connect();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const UniqueFd next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const rlimit none{.rlim_cur = static_cast<rlim_t>(next.get()), .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  turn();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(error_for(client), "gone");
  EXPECT_EQ(error_for(silent), "gone");
  const UniqueFd other = connect();
  ASSERT_TRUE(protocol::send(other.get(), protocol::InfoRequest{}));
  turn(2);
  EXPECT_EQ(requests.size(), 1U);
}

TEST_F(ConnectionsTest, AClosedOneTakesNobody) {
  connections.close();
  const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  EXPECT_NE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
}

}  // namespace
}  // namespace sbx::session
