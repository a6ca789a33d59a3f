// The output of an interpreter, divided among cells.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>

#include "run/cell_output.hpp"

namespace sbx::run {
namespace {

constexpr int kLargePipe = 1 << 20;  // as a relay makes it where much arrives

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reader = UniqueFd(ends[0]);
    writer = UniqueFd(ends[1]);
    EXPECT_EQ(::fcntl(reader.get(), F_SETPIPE_SZ, kLargePipe), kLargePipe);
  }
  void write(const std::string& text) const {
    EXPECT_EQ(::write(writer.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  UniqueFd reader;
  UniqueFd writer;
};

struct CellOutputTest : testing::Test {
  CellOutputTest() { caps.passed.value = Bytes{kLargePipe}; }

  void begin_for(const Pipe& client) {
    ASSERT_TRUE(
        output.begin({.out = client.writer.get(), .err = client.writer.get(), .caps = &caps}));
  }
  /// The output of a cell, or what came after one, when it is complete.
  std::string completed() {
    bool is_complete = false;
    output.complete([&] { is_complete = true; });
    while (!is_complete) EXPECT_TRUE(loop.run_once());
    return output.take().first.text.value_or("");
  }
  /// What the next cell gets.
  std::string next() {
    EXPECT_TRUE(output.begin({}));
    out.write("of the next");
    return completed();
  }

  EventLoop loop = *EventLoop::make();
  policy::Output caps;
  Pipe out;
  Pipe err;
  CellOutput output{loop, std::move(out.reader), std::move(err.reader)};
};

TEST_F(CellOutputTest, WhatIsReadToItsEndLeavesNothingForTheNextCell) {
  Pipe client;
  begin_for(client);
  out.write(std::string(300'000, 'y'));
  (void)completed();
  EXPECT_EQ(next(), "of the next");
}

TEST_F(CellOutputTest, WhatAReaderLeftIsNotOfTheNextCell) {
  ::signal(SIGPIPE, SIG_IGN);
  Pipe client;
  begin_for(client);
  out.write(std::string(300'000, 'y'));
  client.reader.reset();  // noticed only when the cell is complete
  (void)completed();
  EXPECT_EQ(next(), "of the next");
}

TEST_F(CellOutputTest, WhatNobodyWaitsForIsNotOfTheNextCell) {
  Pipe client;
  ASSERT_EQ(::fcntl(client.writer.get(), F_SETFL, O_NONBLOCK), 0);
  client.write(std::string(kLargePipe, 'x'));  // it does not read
  begin_for(client);
  out.write(std::string(300'000, 'y'));
  output.complete([] {});
  output.abandon();
  (void)completed();
  EXPECT_EQ(next(), "of the next");
}

TEST_F(CellOutputTest, WhatComesBetweenTwoCellsIsOfTheNext) {
  Pipe client;
  begin_for(client);
  (void)completed();
  out.write("late ");
  EXPECT_EQ(next(), "late of the next");
}

}  // namespace
}  // namespace sbx::run
