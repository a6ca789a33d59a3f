#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "session/clocks.hpp"

namespace sbx::session {
namespace {

using namespace std::chrono_literals;

struct ClocksTest : testing::Test {
  EventLoop loop = std::move(*EventLoop::make());
  int uses = 0;  ///< so often somebody uses it when it asks
  int idle = 0;
  int over = 0;

  [[nodiscard]] Clocks clocks(Milliseconds idle_time) {
    return {loop,
            idle_time,
            {.is_used = [this] { return uses > 0 && uses-- > 0; },
             .idle = [this] { ++idle; },
             .over = [this] { ++over; }}};
  }
  /// Timers that are due fire before the one that ends this.
  void wait_for(std::chrono::milliseconds time) {
    bool is_there = false;
    loop.after(time, [&] { is_there = true; });
    while (!is_there) ASSERT_TRUE(loop.run_once());
  }
};

TEST_F(ClocksTest, AnIdleSessionEndsOnce) {
  Clocks tested = clocks(1ms);
  tested.begin(1h);
  while (idle == 0) ASSERT_TRUE(loop.run_once());
  wait_for(20ms);
  EXPECT_EQ(idle, 1);
  EXPECT_EQ(over, 0);
}

TEST_F(ClocksTest, OneThatIsUsedDoesNot) {
  uses = 3;
  Clocks tested = clocks(1ms);
  tested.begin(1h);
  while (idle == 0) {
    ASSERT_TRUE(loop.run_once());
    EXPECT_TRUE(idle == 0 || uses == 0);
  }
}

TEST_F(ClocksTest, AUseBeginsTheTimeAnew) {
  Clocks tested = clocks(1h);
  tested.begin(1h);
  tested.note_use();
  wait_for(5ms);
  EXPECT_EQ(idle, 0);
}

TEST_F(ClocksTest, ALifetimeIsOver) {
  Clocks tested = clocks(1h);
  tested.begin(1ms);
  while (over == 0) ASSERT_TRUE(loop.run_once());
  EXPECT_EQ(tested.left(), 0us);
  EXPECT_EQ(idle, 0);
}

/// The timer of the time before is gone.
TEST_F(ClocksTest, AnExtensionReplacesTheLifetime) {
  Clocks tested = clocks(1h);
  tested.begin(1ms);
  for (int i = 0; i < 1000; ++i) tested.extend(1h);
  wait_for(20ms);
  EXPECT_EQ(over, 0);
  EXPECT_GT(tested.left(), 59min);
  tested.extend(1ms);
  while (over == 0) ASSERT_TRUE(loop.run_once());
  wait_for(20ms);
  EXPECT_EQ(over, 1);
}

}  // namespace
}  // namespace sbx::session
