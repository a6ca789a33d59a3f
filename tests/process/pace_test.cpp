#include <gtest/gtest.h>

#include "supervise/pace.hpp"

namespace sbx::supervise {
namespace {

TEST(Pace, ABurstIsTakenAtOnceAndAFloodAtTheRate) {
  Pace pace(10, 3);
  const std::uint64_t now = 1000;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(pace.take(now)) << i;
  EXPECT_FALSE(pace.take(now));
  EXPECT_EQ(pace.next(), now + 10);
  EXPECT_FALSE(pace.take(now + 9));
  EXPECT_TRUE(pace.take(now + 10));
  EXPECT_FALSE(pace.take(now + 10));
}

TEST(Pace, NoMoreThanABurstIsSaved) {
  Pace pace(10, 3);
  int taken = 0;
  while (pace.take(1'000'000)) ++taken;
  EXPECT_EQ(taken, 4);
}

}  // namespace
}  // namespace sbx::supervise
