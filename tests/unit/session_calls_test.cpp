#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "session/attribution.hpp"
#include "session_fixture.hpp"

namespace sbx::session {
namespace {

/// Makes it one that runs, without a process.
void let_run(Call& call) {
  call.worker.process = UniqueFd(::dup(0));
  call.init = static_cast<pid_t>(call.number) + 100;
}

struct CallsTest : testing::Test {
  Calls calls;

  Call& running() {
    Call& call = calls.add();
    let_run(call);
    return call;
  }
  [[nodiscard]] std::size_t known() { return calls.all().size(); }
};

TEST_F(CallsTest, NumbersAreNotUsedAgain) {
  EXPECT_EQ(calls.add().number, 1U);
  calls.all().erase(1);
  EXPECT_EQ(calls.add().number, 2U);
  EXPECT_EQ(calls.find(1), nullptr);
  EXPECT_TRUE(calls.had(1));
  EXPECT_FALSE(calls.had(0));
  EXPECT_FALSE(calls.had(3));
}

TEST_F(CallsTest, ContextsLiveAndDoNotRunAsCalls) {
  running();
  running().is_context = true;
  (void)calls.add();
  EXPECT_EQ(calls.running(), 1U);
  EXPECT_EQ(calls.living(), 2U);
}

TEST_F(CallsTest, TheLast64OfEachKindAreKept) {
  Call& first = running();
  for (int i = 0; i < 100; ++i) calls.add().is_background = i % 2 == 0;
  for (int i = 0; i < 100; ++i) calls.add().is_background = true;
  calls.forget_old();
  EXPECT_EQ(known(), 1 + 50 + 64U);
  EXPECT_EQ(calls.find(first.number), &first);
  EXPECT_EQ(calls.find(2), nullptr);
  EXPECT_NE(calls.find(201), nullptr);
}

TEST_F(CallsTest, DifferentRefusalsAreBounded) {
  Call& call = running();
  for (int i = 0; i < 1000; ++i)
    call.add_refused({.kind = DenialKind::network, .what = std::to_string(i)}, 1, "curl");
  EXPECT_EQ(call.refused.size(), 257U);
  const Denial& others = call.refused.back();
  EXPECT_EQ(others.what, "others");
  EXPECT_EQ(others.count, 1000U - 256);
}

struct AttributionTest : CallsTest {
  struct NoInterpreters : Interpreters {
    Result<Started> start(const Context& /*context*/) override { return Started{.call = call}; }
    Passed pass_on(std::uint64_t /*call*/, const protocol::Request& /*request*/,
                   const Asker& /*client*/) override {
      return Passed::taken;
    }
    void tell(std::uint64_t /*call*/, Note::What /*what*/) override {}
    void handle_again(protocol::Request /*request*/, Asker /*client*/) override {}
    std::uint64_t call = 0;
  } interpreters;
  ContextRequests contexts{interpreters, {.value = 4}, "s"};
  std::map<pid_t, std::uint64_t> memory;
  std::map<pid_t, std::uint64_t> tasks;
  Attribution tested{calls,
                     contexts,
                     "s",
                     {.memory = [this](pid_t init) { return memory[init]; },
                      .tasks = [this](pid_t init) { return tasks[init]; }}};
  int names = 0;  ///< so often the name of a process was looked for

  /// A context whose cell runs.
  Call& context() {
    Call& call = running();
    call.is_context = true;
    interpreters.call = call.number;
    TestClient client;
    contexts.answer(protocol::EvalRequest{}, client.asker());
    return call;
  }
  void refuse(const std::string& what) {
    tested.refused({.kind = DenialKind::network, .what = what}, 1, [this] {
      ++names;
      return std::string("curl");
    });
  }
};

TEST_F(AttributionTest, ARefusalBelongsToAllThatRun) {
  Call& first = running();
  Call& ended = calls.add();
  Call& second = running();
  refuse("a:1");
  refuse("a:1");
  ASSERT_EQ(first.refused.size(), 1U);
  EXPECT_EQ(first.refused[0].count, 2U);
  EXPECT_EQ(first.refused[0].process, "curl");
  EXPECT_EQ(second.refused.size(), 1U);
  EXPECT_TRUE(ended.refused.empty());
  EXPECT_EQ(names, 1);
}

TEST_F(AttributionTest, AContextThatWaitsHasNoPart) {
  Call& cell = context();
  refuse("a:1");
  EXPECT_EQ(cell.refused.size(), 1U);
  contexts.on_note(cell.number, Note::What::answered);
  Call& call = running();
  refuse("b:1");
  EXPECT_EQ(cell.refused.size(), 1U);
  EXPECT_EQ(call.refused.size(), 1U);
}

TEST_F(AttributionTest, WhatNobodyDoesWasLeftBehindByACell) {
  Call& cell = context();
  contexts.on_note(cell.number, Note::What::answered);
  refuse("a:1");
  EXPECT_EQ(cell.refused.size(), 1U);
}

TEST_F(AttributionTest, ACallHearsOfItsOwnTimeOnly) {
  const NetworkFailure old{.what = "old", .why = "refused", .count = 2};
  const NetworkFailure later{.what = "later", .why = "timed out", .count = 1};
  Call& call = running();
  call.failed_before = {old};
  refuse("a:1");
  const run::NetworkTrouble trouble = tested.take_trouble(call, {old, later});
  EXPECT_EQ(trouble.refused.size(), 1U);
  ASSERT_EQ(trouble.failed.size(), 1U);
  EXPECT_EQ(trouble.failed[0].what, "later");
  const run::NetworkTrouble again = tested.take_trouble(call, {old, later});
  EXPECT_TRUE(again.refused.empty());
  EXPECT_TRUE(again.failed.empty());
}

TEST_F(AttributionTest, TheCallWithMostMemoryEnds) {
  Call& small = running();
  Call& large = running();
  memory = {{small.init, 10}, {large.init, 20}};
  EXPECT_EQ(tested.most_memory(5'000'000), &large);
  large.kill_requested_at = 5'000'000;
  EXPECT_EQ(tested.most_memory(5'500'000), nullptr);  // it is dying
  EXPECT_EQ(tested.most_memory(6'500'000), &large);
}

TEST_F(AttributionTest, WhoHasMostProcessesIsNamedWithTheCure) {
  EXPECT_EQ(tested.most_processes().who, "");
  Call& call = running();
  Call& cell = context();
  tasks = {{call.init, 5}, {cell.init, 3}};
  EXPECT_EQ(tested.most_processes().who, "call 1");
  EXPECT_EQ(tested.most_processes().cure, "sbx session kill s 1");
  tasks[cell.init] = 9;
  EXPECT_EQ(tested.most_processes().who, "context python");
  EXPECT_EQ(tested.most_processes().cure, "sbx session restart s python");
  EXPECT_EQ(tested.most_processes().count, 9U);
}

}  // namespace
}  // namespace sbx::session
