#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "session/context_requests.hpp"
#include "session_fixture.hpp"

namespace sbx::session {
namespace {

/// Interpreters that do what the test says.
struct FakeInterpreters : Interpreters {
  Result<Started> start(const Context& context) override {
    if (is_spent) return fail(Error{.kind = ErrorKind::policy, .code = "session-cpu-spent"});
    found_lost.push_back(context.life == Life::lost);
    directories.push_back(context.directory);
    return Started{.call = ++last, .since = 1};
  }
  Passed pass_on(std::uint64_t call, const protocol::Request& /*request*/,
                 const Asker& client) override {
    if (passes == Passed::taken) clients[call].emplace_back(::dup(client.connection.get()));
    return passes;
  }
  void tell(std::uint64_t call, Note::What what) override { told.emplace_back(call, what); }
  void handle_again(protocol::Request request, Asker client) override {
    again.push_back({.request = std::move(request), .client = std::move(client)});
  }

  bool is_spent = false;
  Passed passes = Passed::taken;
  std::uint64_t last = 0;
  std::vector<bool> found_lost;          ///< what each one was started with
  std::vector<std::string> directories;  ///< the same
  std::map<std::uint64_t, std::vector<UniqueFd>> clients;
  std::vector<std::pair<std::uint64_t, Note::What>> told;
  std::vector<PendingRequest> again;
};

struct ContextsTest : testing::Test {
  FakeInterpreters interpreters;
  ContextRequests contexts{interpreters, {.value = 2}, "s"};

  void eval(TestClient& client, const std::string& context = {}) {
    contexts.answer(protocol::EvalRequest{.context = context}, client.asker());
  }
  void open(TestClient& client) { contexts.answer(protocol::OpenContextRequest{}, client.asker()); }
  template <class Asked>
  void ask(TestClient& client, const std::string& context) {
    contexts.answer(Asked{.context = context}, client.connection());
  }
  [[nodiscard]] Json list() {
    TestClient client;
    contexts.answer(protocol::ContextsRequest{}, client.connection());
    return client.answer()["contexts"];
  }
  [[nodiscard]] std::string states() {
    std::string states;
    for (const Json& each : list())
      states += each["context"].get<std::string>() + ": " + each["state"].get<std::string>() + "; ";
    return states;
  }
};

TEST_F(ContextsTest, TheFirstCellStartsAnInterpreterAndLaterOnesFindIt) {
  TestClient first;
  TestClient second;
  eval(first);
  EXPECT_EQ(states(), "python: starting; ");
  contexts.on_note(1, Note::What::ready);
  EXPECT_EQ(states(), "python: running; ");
  eval(second);
  contexts.on_note(1, Note::What::answered);
  EXPECT_TRUE(contexts.is_busy());
  contexts.on_note(1, Note::What::answered);
  EXPECT_EQ(states(), "python: idle; ");
  EXPECT_FALSE(contexts.is_busy());
  EXPECT_EQ(interpreters.last, 1U);
  EXPECT_EQ(interpreters.clients[1].size(), 2U);
}

TEST_F(ContextsTest, ACellAfterALostInterpreterIsToldSo) {
  TestClient first;
  TestClient second;
  eval(first);
  contexts.on_note(1, Note::What::ready);
  contexts.on_end(1, "killed");
  EXPECT_EQ(states(), "python: lost; ");
  eval(second);
  contexts.on_note(2, Note::What::ready);
  EXPECT_EQ(interpreters.found_lost, (std::vector{false, true}));
}

TEST_F(ContextsTest, OneThatEndsBeforeItWasReadyLeavesNothing) {
  TestClient client;
  eval(client);
  contexts.on_end(1, "it did not begin");
  EXPECT_EQ(states(), "");
}

TEST_F(ContextsTest, ACellThatComesWhileItsContextEndsIsForTheNext) {
  TestClient first;
  TestClient restarter;
  TestClient second;
  eval(first);
  contexts.on_note(1, Note::What::ready);
  ask<protocol::RestartRequest>(restarter, "python");
  EXPECT_EQ(interpreters.told.back(), std::pair(std::uint64_t{1}, Note::What::end));
  EXPECT_FALSE(restarter.has_answer());
  eval(second);
  EXPECT_TRUE(interpreters.again.empty());
  contexts.on_end(1, "");
  EXPECT_EQ(restarter.error(), "");
  ASSERT_EQ(interpreters.again.size(), 1U);
  EXPECT_EQ(states(), "");  // it was ended on purpose: nobody misses it
}

TEST_F(ContextsTest, OneThatCannotBePassedOnWaitsForTheNextToo) {
  TestClient first;
  TestClient second;
  eval(first);
  interpreters.passes = Interpreters::Passed::ended;
  eval(second);
  EXPECT_FALSE(second.has_answer());
  contexts.on_end(1, "");
  EXPECT_EQ(interpreters.again.size(), 1U);
}

TEST_F(ContextsTest, AnOpenedOneWhoseRequestCameTooLateIsAskedAgainAsItWasOpened) {
  TestClient client;
  interpreters.passes = Interpreters::Passed::ended;
  contexts.answer(protocol::OpenContextRequest{.directory = "no-directory"}, client.asker());
  contexts.on_end(1, "");
  ASSERT_EQ(interpreters.again.size(), 1U);
  interpreters.passes = Interpreters::Passed::taken;
  auto [request, asker] = std::move(interpreters.again.front());
  contexts.answer(std::get<protocol::InspectRequest>(std::move(request)), std::move(asker));
  EXPECT_EQ(interpreters.directories, (std::vector<std::string>{"no-directory", "no-directory"}));
  contexts.on_end(2, "");
  EXPECT_EQ(states(), "");
}

TEST_F(ContextsTest, NoMoreLiveThanThePolicyAllows) {
  TestClient clients[4];
  eval(clients[0], "a");
  eval(clients[1], "b");
  eval(clients[2], "c");
  EXPECT_EQ(clients[2].error(), "too-many-contexts");
  EXPECT_EQ(states(), "a: starting; b: starting; ");
  contexts.on_end(1, "");
  eval(clients[3], "c");
  EXPECT_FALSE(clients[3].has_answer());
}

TEST_F(ContextsTest, NoMoreCellsWaitThanSixteen) {
  std::vector<TestClient> clients(17);
  for (TestClient& each : clients) eval(each);
  EXPECT_EQ(clients[16].error(), "context-busy");
  contexts.on_note(1, Note::What::answered);
  TestClient next;
  eval(next);
  EXPECT_FALSE(next.has_answer());
  interpreters.passes = Interpreters::Passed::full;
  contexts.on_note(1, Note::What::answered);
  TestClient last;
  eval(last);
  EXPECT_EQ(last.error(), "context-busy");
}

TEST_F(ContextsTest, NamesAndLanguagesAreChecked) {
  TestClient clients[3];
  eval(clients[0], "Not A Name");
  EXPECT_EQ(clients[0].error(), "bad-context-name");
  eval(clients[1]);
  contexts.answer(protocol::EvalRequest{.language = "r", .context = "python"}, clients[2].asker());
  EXPECT_EQ(clients[2].error(), "other-language");
  for (int i = 0; i < 3; ++i) {
    TestClient client;
    switch (i) {
      case 0:
        ask<protocol::InterruptRequest>(client, "none");
        break;
      case 1:
        ask<protocol::RestartRequest>(client, "none");
        break;
      default:
        ask<protocol::CloseContextRequest>(client, "none");
    }
    EXPECT_EQ(client.error(), "no-such-context");
  }
}

TEST_F(ContextsTest, AnOpenedOneKeepsItsNameUntilItIsClosed) {
  TestClient opener;
  open(opener);
  EXPECT_EQ(states(), "python-1: starting; ");
  contexts.on_note(1, Note::What::ready);
  contexts.on_note(1, Note::What::answered);
  TestClient restarter;
  ask<protocol::RestartRequest>(restarter, "python-1");
  contexts.on_end(1, "");
  EXPECT_EQ(states(), "python-1: starting; ");  // anew, at once
  EXPECT_EQ(interpreters.last, 2U);
  contexts.on_note(2, Note::What::ready);
  TestClient closer;
  TestClient late;
  ask<protocol::CloseContextRequest>(closer, "python-1");
  eval(late, "python-1");
  EXPECT_EQ(late.error(), "no-such-context");
  contexts.on_end(2, "");
  EXPECT_EQ(closer.error(), "");
  EXPECT_EQ(states(), "");
  TestClient next;
  open(next);
  EXPECT_EQ(states(), "python-2: starting; ");  // no name comes twice
}

TEST_F(ContextsTest, AnOpenedOneThatNeverLivedIsForgotten) {
  interpreters.is_spent = true;
  TestClient opener;
  open(opener);
  EXPECT_EQ(opener.error(), "session-cpu-spent");
  EXPECT_EQ(states(), "");
}

TEST_F(ContextsTest, AnInterruptReachesOnlyACell) {
  TestClient clients[3];
  eval(clients[0]);
  contexts.on_note(1, Note::What::ready);
  ask<protocol::InterruptRequest>(clients[1], "python");
  EXPECT_EQ(clients[1].answer()["interrupted"], true);
  EXPECT_EQ(interpreters.told.back(), std::pair(std::uint64_t{1}, Note::What::interrupt));
  contexts.on_note(1, Note::What::answered);
  ask<protocol::InterruptRequest>(clients[2], "python");
  EXPECT_EQ(clients[2].answer()["interrupted"], false);
  EXPECT_EQ(interpreters.told.size(), 1U);
}

TEST_F(ContextsTest, NamesOfLostOnesAreForgottenInTheEnd) {
  for (int i = 0; i < 100; ++i) {
    TestClient client;
    eval(client, "c" + std::to_string(i));
    contexts.on_note(interpreters.last, Note::What::ready);
    contexts.on_end(interpreters.last, "");
  }
  EXPECT_EQ(list().size(), 64U);
}

/// A worker that says what none would changes nothing.
TEST_F(ContextsTest, NotesOfNobodyAreIgnored) {
  contexts.on_note(7, Note::What::ready);
  contexts.on_end(7, "");
  contexts.on_note(0, Note::What::answered);
  TestClient client;
  eval(client);
  for (int i = 0; i < 3; ++i) contexts.on_note(1, Note::What::answered);
  EXPECT_EQ(list()[0]["waiting"], 0U);
}

}  // namespace
}  // namespace sbx::session
