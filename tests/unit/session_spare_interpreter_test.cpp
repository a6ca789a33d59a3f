#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "session/spare_interpreter.hpp"
#include "session/worker_state.hpp"

namespace sbx::session {
namespace {

plan::Plan start_of(const std::string& executable) {
  plan::Plan plan;
  plan.executable = executable;
  plan.command = {executable, "-c", "driver"};
  return plan;
}

/// A spare whose interpreter is the test.
struct SpareInterpreterTest : testing::Test {
  EventLoop loop = std::move(*EventLoop::make());
  std::optional<plan::Plan> now = start_of("/usr/bin/python3");
  std::vector<std::string> asked;
  int contexts = 0;
  int ends = 0;
  SpareInterpreter spare{true,
                         {.find_start = [this] { return now; },
                          .ask = [this](std::string_view message) { asked.emplace_back(message); },
                          .become_context = [this] { ++contexts; },
                          .end = [this] { ++ends; }}};

  void live(bool tells_changes = true) {
    spare.note_start();
    spare.attach(loop, tells_changes);
  }
  /// A spare that does not get its answer ends first.
  void wait_for_the_end() {
    while (ends == 0) ASSERT_TRUE(loop.run_once());
  }
};

TEST_F(SpareInterpreterTest, OneThatWaitsIsNobodys) {
  live();
  spare.note_ready();
  EXPECT_TRUE(spare.is_spare());
  EXPECT_FALSE(spare.is_claimed());
  EXPECT_EQ(asked, std::vector<std::string>{R"({"op":"wait"})"});
  EXPECT_EQ(contexts + ends, 0);
}

TEST_F(SpareInterpreterTest, AContextGetsItOnceTheDriverSaysThatNothingChanged) {
  live();
  spare.note_ready();
  spare.claim();
  EXPECT_EQ(asked.back(), R"({"op":"unchanged"})");
  EXPECT_EQ(contexts, 0);
  spare.take_answer(true);
  EXPECT_EQ(contexts, 1);
  EXPECT_EQ(ends, 0);
  EXPECT_FALSE(spare.is_spare());
}

TEST_F(SpareInterpreterTest, ADriverThatReadsNoFilesIsNotAsked) {
  live(false);
  spare.note_ready();
  spare.claim();
  EXPECT_TRUE(asked.empty());
  EXPECT_EQ(contexts, 1);
}

TEST_F(SpareInterpreterTest, ChangedFilesEndIt) {
  live();
  spare.note_ready();
  spare.claim();
  spare.take_answer(false);
  EXPECT_EQ(ends, 1);
  EXPECT_EQ(contexts, 0);
  EXPECT_TRUE(spare.is_claimed());
}

TEST_F(SpareInterpreterTest, AnotherProgramAnotherCommandOrAnotherEnvironmentEndsIt) {
  live(false);
  spare.note_ready();
  plan::Plan other = start_of("/usr/local/bin/python3");
  now = other;
  spare.claim();
  EXPECT_EQ(ends, 1);
  EXPECT_EQ(contexts, 0);
  other = start_of("/usr/bin/python3");
  other.environment = {"LANG=C"};
  now = other;
  spare.claim();
  EXPECT_EQ(ends, 2);
  now.reset();
  spare.claim();
  EXPECT_EQ(ends, 3);
  EXPECT_EQ(contexts, 0);
}

TEST_F(SpareInterpreterTest, OneThatIsClaimedBeforeItIsReadyIsLookedAtOnceItIs) {
  live(false);
  spare.claim();
  EXPECT_EQ(contexts + ends, 0);
  spare.note_ready();
  EXPECT_EQ(contexts, 1);
}

TEST_F(SpareInterpreterTest, AStartThatHangsEnds) {
  live();
  spare.claim();
  wait_for_the_end();
  EXPECT_EQ(contexts, 0);
}

TEST_F(SpareInterpreterTest, ADriverThatDoesNotAnswerEnds) {
  live();
  spare.note_ready();
  spare.claim();
  wait_for_the_end();
  EXPECT_EQ(contexts, 0);
}

TEST(NoSpare, WasNeverOne) {
  const SpareInterpreter none{false, {}};
  EXPECT_FALSE(none.is_spare() || none.is_claimed());
}

}  // namespace
}  // namespace sbx::session
