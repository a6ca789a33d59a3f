#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "session/background.hpp"
#include "session/call_input.hpp"
#include "session_fixture.hpp"

namespace sbx::session {
namespace {

struct BackgroundTest : testing::Test {
  EventLoop loop = std::move(*EventLoop::make());
  Calls calls;
  Call& call = calls.add();
  int drained = 0;
  sys::Pipe input = std::move(*sys::make_pipe());
  std::vector<UniqueFd> fds;

  void SetUp() override {
    fds.push_back(std::move(input.read));
    for (int i = 0; i < 3; ++i) fds.emplace_back(::dup(STDERR_FILENO));  // the last is for events
  }
  void open(const protocol::CallRequest& request) {
    ASSERT_TRUE(open_streams(
        call, fds, request,
        {.loop = loop,
         .log_bytes = 100,
         .used = [] {},
         .output = {.drained = [this] { ++drained; }, .await = [](UniqueFd) { return true; }}}));
    ASSERT_EQ(fds.size(), 4U);
    ASSERT_NE(call.output, nullptr);
  }
  [[nodiscard]] std::string read_input() const {
    std::array<char, 10> bytes{};
    const ssize_t got = ::read(fds[0].get(), bytes.data(), bytes.size());
    return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
  }
};

TEST_F(BackgroundTest, WritesIntoTheLogOfTheSession) {
  open({.background = true});
  ASSERT_EQ(::write(fds[1].get(), "out", 3), 3);
  ASSERT_EQ(::write(fds[2].get(), "error", 5), 5);
  while (call.output->err_bytes() == 0 || call.output->out_bytes() == 0)
    ASSERT_TRUE(loop.run_once());
  EXPECT_EQ(call.output->out_bytes(), 3U);
  EXPECT_EQ(call.output->err_bytes(), 5U);
  fds.clear();
  while (drained == 0) ASSERT_TRUE(loop.run_once());
}

TEST_F(BackgroundTest, ReadsNothingUnlessItWasNamed) {
  ASSERT_EQ(::write(input.write.get(), "named", 5), 5);
  open({.background = true});
  EXPECT_EQ(read_input(), "");
  EXPECT_EQ(call.input, nullptr);
}

TEST_F(BackgroundTest, ReadsAnInputThatWasNamed) {
  ASSERT_EQ(::write(input.write.get(), "named", 5), 5);
  open({.background = true, .reads_stdin = true});
  EXPECT_EQ(read_input(), "named");
}

TEST_F(BackgroundTest, HasAnInputForSendersWhereItIsLeftOpen) {
  open({.background = true, .open_stdin = true});
  EXPECT_NE(call.input, nullptr);
}

}  // namespace
}  // namespace sbx::session
