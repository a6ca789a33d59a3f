#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.hpp"
#include "base/sys.hpp"
#include "mcp/wire.hpp"

namespace sbx::mcp {
namespace {

class McpWire : public testing::Test {
 protected:
  void SetUp() override {
    (void)std::signal(SIGPIPE, SIG_IGN);
    in_ = std::move(*sys::make_pipe());
    out_ = std::move(*sys::make_pipe());
    wire_.emplace(std::move(in_.read), std::move(out_.write));
    ASSERT_TRUE(
        wire_->attach(loop_, {.line = [this](const std::string& line) { said_.push_back(line); },
                              .too_long = [this] { said_.emplace_back("too long"); },
                              .ended = [this] { said_.emplace_back("ended"); },
                              .gone = [this] { said_.emplace_back("gone"); }}));
  }
  void write(const std::string& bytes) {
    ASSERT_EQ(::write(in_.write.get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
    ASSERT_TRUE(loop_.run_once());
  }

  EventLoop loop_ = std::move(*EventLoop::make());
  sys::Pipe in_;
  sys::Pipe out_;
  std::optional<Wire> wire_;
  std::vector<std::string> said_;
};

TEST_F(McpWire, GivesLinesHoweverTheirBytesArrive) {
  write("o");
  write("ne\ntwo\n\nth");
  EXPECT_EQ(said_, (std::vector<std::string>{"one", "two", ""}));
  write("ree\n");
  EXPECT_EQ(said_.back(), "three");
}

TEST_F(McpWire, TakesALineWithoutItsEndForNone) {
  write("one\ntw");
  in_.write.reset();
  ASSERT_TRUE(loop_.run_once());
  EXPECT_EQ(said_, (std::vector<std::string>{"one", "ended"}));
}

TEST_F(McpWire, AnswersAClientThatHasClosedItsInput) {
  write("one\n");
  in_.write.reset();
  ASSERT_TRUE(loop_.run_once());
  wire_->send("its answer");
  wire_->finish();
  std::string got(64, '\0');
  const ssize_t count = ::read(out_.read.get(), got.data(), got.size());
  EXPECT_EQ(got.substr(0, static_cast<std::size_t>(std::max<ssize_t>(count, 0))), "its answer\n");
}

TEST_F(McpWire, SkipsALineThatIsTooLongToItsEnd) {
  const std::string block(std::size_t{32} << 10, 'x');
  for (std::size_t sent = 0; sent <= Wire::kLongestLine; sent += block.size()) write(block);
  write("the rest\nnext\n");
  EXPECT_EQ(said_, (std::vector<std::string>{"too long", "next"}));
}

TEST_F(McpWire, WritesWholeLinesAsTheirReaderTakesThem) {
  const std::string large(std::size_t{1} << 20, 'y');
  wire_->send(large);
  wire_->send("small");
  std::string got;
  std::string block(std::size_t{64} << 10, '\0');
  while (!got.ends_with("small\n")) {
    ASSERT_TRUE(loop_.run_once());
    const ssize_t count = ::read(out_.read.get(), block.data(), block.size());
    ASSERT_GT(count, 0);
    got.append(block, 0, static_cast<std::size_t>(count));
  }
  EXPECT_EQ(got, large + "\nsmall\n");
}

TEST_F(McpWire, EndsWhenNobodyReads) {
  out_.read.reset();
  wire_->send("x");
  while (said_.empty()) ASSERT_TRUE(loop_.run_once());
  EXPECT_EQ(said_, (std::vector<std::string>{"gone"}));
  in_.write.reset();
  wire_->send("nobody hears it");
  wire_->finish();
}

}  // namespace
}  // namespace sbx::mcp
