#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "session/call_input.hpp"
#include "session_fixture.hpp"

namespace sbx::session {
namespace {

struct CallInputTest : testing::Test {
  EventLoop loop = std::move(*EventLoop::make());
  std::pair<UniqueFd, UniqueFd> pair = std::move(*sys::make_stream_pair());
  int used = 0;
  CallInput input{loop, 7, std::move(pair.second), [this] { ++used; }};

  /// What the program reads, "end" at its end and "" where there is nothing.
  [[nodiscard]] std::string read() const {
    char text[64];
    const ssize_t got = ::recv(pair.first.get(), text, sizeof text, MSG_DONTWAIT);
    return got == 0 ? "end" : got < 0 ? "" : std::string(text, static_cast<std::size_t>(got));
  }
  /// The client's turn: it gets the socket, which it writes to.
  static void write(TestClient& client, const std::string& text) {
    auto turn = protocol::receive(client.socket().get());
    ASSERT_TRUE(turn);
    ASSERT_EQ(turn->fds.size(), 1U);
    ASSERT_EQ(::write(turn->fds[0].get(), text.data(), text.size()), std::ssize(text));
  }
  static void say_written(TestClient& client, bool end) {
    ASSERT_TRUE(protocol::send(client.socket().get(), protocol::InputWritten{.end = end}));
  }
  void turn() { ASSERT_TRUE(loop.run_once()); }
};

TEST_F(CallInputTest, SendersWriteOneAfterAnother) {
  TestClient first;
  TestClient second;
  input.add(first.connection());
  input.add(second.connection());
  write(first, "one");
  EXPECT_FALSE(second.has_answer());
  say_written(first, false);
  turn();
  EXPECT_EQ(first.error(), "");
  write(second, "two");
  say_written(second, true);
  turn();
  EXPECT_EQ(second.error(), "");
  EXPECT_EQ(read(), "onetwo");
  EXPECT_EQ(read(), "end");
  EXPECT_EQ(used, 2);
  TestClient third;
  input.add(third.connection());
  EXPECT_EQ(third.error(), "input-ended");
}

TEST_F(CallInputTest, OneThatLeavesGivesItsTurnUp) {
  TestClient first;
  TestClient second;
  input.add(first.connection());
  input.add(second.connection());
  write(first, "half");
  first.leave();
  turn();
  write(second, "two");
  EXPECT_EQ(read(), "halftwo");
}

TEST_F(CallInputTest, ThoseWhoWaitLearnThatTheInputHasEnded) {
  TestClient first;
  TestClient second;
  input.add(first.connection());
  input.add(second.connection());
  write(first, "x");
  say_written(first, true);
  turn();
  EXPECT_EQ(second.error(), "input-ended");
}

TEST_F(CallInputTest, ThoseWhoWaitLearnThatTheCallHasEnded) {
  TestClient first;
  TestClient second;
  input.add(first.connection());
  input.add(second.connection());
  write(first, "x");
  input.close({.kind = ErrorKind::usage, .code = "call-ended"});
  EXPECT_EQ(first.error(), "call-ended");
  EXPECT_EQ(second.error(), "call-ended");
}

/// Those that have left do not count.
TEST_F(CallInputTest, NoMoreWaitThan64) {
  std::vector<TestClient> clients(66);
  for (std::size_t i = 0; i < 65; ++i) input.add(clients[i].connection());
  EXPECT_EQ(clients[64].error(), "too-many-senders");
  clients[30].leave();
  input.add(clients[65].connection());
  EXPECT_FALSE(clients[65].has_answer());
}

/// A packet of no sbx takes nothing from those who come after it.
TEST_F(CallInputTest, WhatIsNoAnswerEndsTheTurnOnly) {
  TestClient first;
  TestClient second;
  input.add(first.connection());
  input.add(second.connection());
  write(first, "x");
  ASSERT_TRUE(protocol::send(first.socket().get(), Json{{"end", "perhaps"}}));
  turn();
  write(second, "y");
  EXPECT_EQ(read(), "xy");
}

}  // namespace
}  // namespace sbx::session
