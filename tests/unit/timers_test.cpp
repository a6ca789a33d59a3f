#include "base/timers.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sbx {
namespace {

struct TimersTest : testing::Test {
  Timers timers;
  std::string fired;

  Timers::Id add(std::uint64_t deadline, std::uint64_t earliest, char name) {
    return timers.add(deadline, earliest, [this, name] { fired += name; });
  }
};

TEST_F(TimersTest, FiresWhatIsDueInOrder) {
  add(30, 30, 'c');
  add(10, 10, 'a');
  add(20, 20, 'b');
  timers.fire(9);
  EXPECT_EQ(fired, "");
  timers.fire(20);
  EXPECT_EQ(fired, "ab");
  timers.fire(100);
  EXPECT_EQ(fired, "abc");
  EXPECT_EQ(timers.count(), 0U);
}

TEST_F(TimersTest, OneThatMayFireEarlierDoesNotWakeTheCallerEarlier) {
  add(50, 10, 'e');
  add(40, 40, 'l');
  EXPECT_EQ(timers.next_deadline(), 40U);
  timers.fire(10);
  EXPECT_EQ(fired, "e");
  timers.fire(40);
  EXPECT_EQ(fired, "el");
  EXPECT_EQ(timers.next_deadline(), std::nullopt);
}

TEST_F(TimersTest, ACallbackMayCancelAnotherOneThatIsDue) {
  Timers::Id second = Timers::kNone;
  timers.add(1, 1, [&] { timers.cancel(second); });
  second = add(2, 2, 'b');
  add(3, 3, 'c');
  timers.fire(10);
  EXPECT_EQ(fired, "c");
}

TEST_F(TimersTest, WhatACallbackAddsWaitsForTheNextTurn) {
  timers.add(1, 1, [&] { add(0, 0, 'n'); });
  add(2, 2, 'b');
  timers.fire(10);
  EXPECT_EQ(fired, "b");
  timers.fire(10);
  EXPECT_EQ(fired, "bn");
}

TEST_F(TimersTest, ACancelledOneLeavesNothing) {
  const Timers::Id id = add(10, 5, 'a');
  timers.cancel(id);
  timers.cancel(id);
  timers.cancel(Timers::kNone);
  EXPECT_EQ(timers.count(), 0U);
  EXPECT_EQ(timers.next_deadline(), std::nullopt);
  timers.fire(100);
  EXPECT_EQ(fired, "");
}

TEST_F(TimersTest, OnesThatSetThemselvesAgainDoNotGrow) {
  Timers::Id id = Timers::kNone;
  for (int round = 0; round < 100'000; ++round) {
    timers.cancel(id);
    id = add(1'000'000, 0, 'x');
  }
  EXPECT_EQ(timers.count(), 1U);
}

}  // namespace
}  // namespace sbx
