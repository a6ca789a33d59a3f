#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "session/call_output.hpp"
#include "session_fixture.hpp"

namespace sbx::session {
namespace {

TEST(Log, KeepsTheFirstAndTheLastHalf) {
  Log log(10);
  log.add("abc");
  EXPECT_EQ(log.since(0), "abc");
  EXPECT_EQ(log.since(2), "c");
  EXPECT_EQ(log.since(3), "");
  log.add("defghijklmnopqrstuvwxyz");
  EXPECT_EQ(log.written(), 26U);
  EXPECT_EQ(log.since(0), "abcde\n... 16 bytes left out ...\nvwxyz");
  EXPECT_EQ(log.since(4), "e\n... 16 bytes left out ...\nvwxyz");
  EXPECT_EQ(log.since(10), "\n... 11 bytes left out ...\nvwxyz");
  EXPECT_EQ(log.since(24), "yz");
  EXPECT_EQ(log.since(99), "");
}

TEST(Log, NeedsNoMoreThanItKeepsOnceItIsClosed) {
  constexpr std::size_t kCap = 1 << 20;
  Log log(kCap);
  for (int i = 0; i < 100; ++i) log.add(std::string(100'000, 'x'));
  log.close();
  EXPECT_LE(log.memory(), kCap + 64);
  EXPECT_EQ(log.since(10'000'000 - 5), "xxxxx");
}

struct CallOutputTest : testing::Test {
  EventLoop loop = std::move(*EventLoop::make());
  int drained = 0;
  std::vector<UniqueFd> awaited;
  CallOutput output{loop,
                    64,
                    {.drained = [this] { ++drained; },
                     .await =
                         [this](UniqueFd connection) {
                           awaited.push_back(std::move(connection));
                           return true;
                         }}};
  sys::Pipe out = std::move(*sys::make_pipe());
  sys::Pipe err = std::move(*sys::make_pipe());

  void SetUp() override { ASSERT_TRUE(output.begin(std::move(out.read), std::move(err.read))); }
  void write(const sys::Pipe& pipe, const std::string& text) {
    ASSERT_EQ(::write(pipe.write.get(), text.data(), text.size()), std::ssize(text));
    ASSERT_TRUE(loop.run_once());
  }
  void close_pipes() {
    out.write.reset();
    err.write.reset();
    while (drained == 0) ASSERT_TRUE(loop.run_once());
  }
  [[nodiscard]] std::string log(bool follow = false, std::uint64_t from = 0) {
    TestClient client;
    output.answer({.call = 1, .follow = follow, .out = from}, client.connection());
    return text_of(client);
  }
  [[nodiscard]] static std::string text_of(TestClient& client) {
    const Json body = client.answer();
    return body["out_text"].get<std::string>() + "|" + body["err_text"].get<std::string>() +
           (body["ended"].get<bool>() ? "|ended" : "");
  }
};

TEST_F(CallOutputTest, BothStreamsAreKept) {
  EXPECT_EQ(log(), "|");
  write(out, "one");
  write(err, "two");
  EXPECT_EQ(log(), "one|two");
  EXPECT_EQ(output.out_bytes(), 3U);
  EXPECT_EQ(log(false, 2), "e|two");
}

TEST_F(CallOutputTest, AFollowerHearsOfMoreAndAsksForTheRest) {
  TestClient client;
  output.answer({.call = 1, .follow = true}, client.connection());
  EXPECT_FALSE(client.has_answer());
  write(out, "one");
  EXPECT_EQ(text_of(client), "one|");
  EXPECT_EQ(awaited.size(), 1U);  // the session reads its next request
}

TEST_F(CallOutputTest, AFollowerThatLagsIsAnsweredAtOnce) {
  write(out, "one");
  EXPECT_EQ(log(true), "one|");
}

/// It ends once the call has, and everything is read: in either order.
TEST_F(CallOutputTest, TheLastAnswerSaysThatTheCallHasEnded) {
  write(out, "one");
  TestClient client;
  output.answer({.call = 1, .follow = true, .out = 3}, client.connection());
  close_pipes();
  EXPECT_EQ(drained, 1);
  EXPECT_TRUE(output.is_drained());
  EXPECT_FALSE(client.has_answer());
  output.end();
  EXPECT_EQ(text_of(client), "||ended");
  EXPECT_TRUE(awaited.empty());
  EXPECT_EQ(log(true), "one||ended");
}

/// Whoever waits for the call's end may ask for its log before the session has read the pipes.
TEST_F(CallOutputTest, WhatSbxSaysComesAfterAllThatWasWritten) {
  const std::string most(100'000, 'x');
  std::ignore = ::fcntl(err.write.get(), F_SETPIPE_SZ, 1 << 20);
  ASSERT_EQ(::write(err.write.get(), most.data(), most.size()), std::ssize(most));
  ASSERT_EQ(::write(out.write.get(), "one", 3), 3);
  output.add_last("sbx: it has ended\n");
  EXPECT_EQ(output.err_bytes(), most.size() + 18);
  EXPECT_TRUE(log().starts_with("one|"));
  EXPECT_TRUE(log().ends_with("xsbx: it has ended\n"));
  close_pipes();
  EXPECT_EQ(drained, 1);
}

}  // namespace
}  // namespace sbx::session
