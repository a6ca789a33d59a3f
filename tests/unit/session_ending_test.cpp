#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "session/ending.hpp"
#include "session_fixture.hpp"

namespace sbx::session {
namespace {

struct EndingTest : testing::Test {
  EventLoop loop = std::move(*EventLoop::make());
  std::vector<EndCause> causes;
  int calls = 0;
  bool is_told = true;
  bool is_reading = false;
  bool can_keep = true;
  std::vector<std::string> kept;
  Ending ending{loop,
                {.end_calls = [this](EndCause cause) { causes.push_back(cause); },
                 .has_calls = [this] { return calls > 0; },
                 .all_is_told = [this] { return is_told; },
                 .is_reading = [this] { return is_reading; },
                 .keep =
                     [this](const std::string& set) {
                       kept.push_back(set);
                       return is_reading = can_keep;
                     }}};
};

TEST_F(EndingTest, WithoutCallsItIsOverAtOnce) {
  EXPECT_FALSE(ending.has_begun());
  ending.look();
  EXPECT_FALSE(ending.is_over());
  ending.begin(EndCause::lifetime);
  EXPECT_TRUE(ending.is_over());
  EXPECT_EQ(causes, std::vector{EndCause::lifetime});
}

TEST_F(EndingTest, ItWaitsForItsCallsAndTellsThemOnce) {
  calls = 1;
  ending.begin(EndCause::owner);
  ending.begin(EndCause::stop);
  EXPECT_EQ(causes.size(), 1U);
  EXPECT_FALSE(ending.is_over());
  calls = 0;
  ending.look();
  EXPECT_TRUE(ending.is_over());
}

TEST_F(EndingTest, CallsThatDoNotEndHaveFourSeconds) {
  calls = 1;
  ending.begin(EndCause::stop);
  while (!ending.is_over()) ASSERT_TRUE(loop.run_once());
  EXPECT_EQ(calls, 1);
}

TEST_F(EndingTest, WhoFollowsTheOutputHearsTheRest) {
  is_told = false;
  ending.begin(EndCause::stop);
  ending.look();
  EXPECT_FALSE(ending.is_over());
  is_told = true;
  while (!ending.is_over()) ASSERT_TRUE(loop.run_once());
}

TEST_F(EndingTest, ChangesAreKeptWhereNoCommandAskedForTheEnd) {
  ending.keep_as("set");
  calls = 1;
  ending.begin(EndCause::lifetime);
  EXPECT_TRUE(kept.empty());
  calls = 0;
  ending.look();
  EXPECT_EQ(kept, std::vector<std::string>{"set"});
  EXPECT_FALSE(ending.is_over());
  is_reading = false;
  ending.look();
  EXPECT_TRUE(ending.is_over());
  EXPECT_EQ(kept.size(), 1U);
}

TEST_F(EndingTest, ItIsOverWhereTheyCannotBeKept) {
  ending.keep_as("set");
  can_keep = false;
  ending.begin(EndCause::owner);
  EXPECT_TRUE(ending.is_over());
}

TEST_F(EndingTest, ACommandKeepsNothingAndHearsOfTheEnd) {
  TestClient client;
  ending.keep_as("set");
  is_reading = true;
  ending.stop(client.connection());
  EXPECT_FALSE(ending.is_over());
  is_reading = false;
  ending.look();
  EXPECT_TRUE(ending.is_over());
  EXPECT_TRUE(kept.empty());
  EXPECT_FALSE(client.has_answer());
  ending.tell_stoppers();
  EXPECT_EQ(client.error(), "");
}

TEST_F(EndingTest, ADeadSandboxHasNobodyToTell) {
  ending.begin_without_calls();
  EXPECT_TRUE(ending.is_over());
  EXPECT_TRUE(causes.empty());
}

}  // namespace
}  // namespace sbx::session
