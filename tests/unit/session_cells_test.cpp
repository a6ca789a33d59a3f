#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/message.hpp"
#include "base/sys.hpp"
#include "session/cell_turns.hpp"
#include "session/questions.hpp"
#include "session_fixture.hpp"

namespace sbx::session {
namespace {

using namespace std::chrono_literals;

/// A sandbox without a process.
class NoProcess final : public CellSandbox {
 public:
  [[nodiscard]] const policy::Policy& policy() const override { return policy_; }
  [[nodiscard]] const std::vector<Degraded>& degraded() const override { return degraded_; }
  [[nodiscard]] Status look_for_denied_names(std::vector<Degraded>& /*degraded*/) const override {
    if (hides) return {};
    return fail(Error{.kind = ErrorKind::host, .code = "cannot-hide", .message = "a name"});
  }
  void forget_memory_limit() override {}
  void end(const Verdict& reason) override { ended.emplace(reason); }
  [[nodiscard]] std::uint64_t cpu_microseconds() override { return cpu += 5000; }
  void renew_cpu_time() override { ++renewed; }
  [[nodiscard]] std::vector<Denial> take_denials() override { return {}; }
  [[nodiscard]] std::vector<LimitMet> take_limits_met(int /*status*/) override { return {}; }

  bool hides = true;
  std::uint64_t cpu = 0;
  int renewed = 0;
  std::optional<Verdict> ended;

 private:
  policy::Policy policy_;
  std::vector<Degraded> degraded_;
};

/// Cells and questions of a context whose interpreter is the test.
struct CellsTest : testing::Test {
  EventLoop loop = std::move(*EventLoop::make());
  NoProcess sandbox;
  ContextOfWorker context{.name = "mine", .language = "python"};
  run::CallName call{.session = "work", .session_id = "s_1", .number = 3};
  std::pair<UniqueFd, UniqueFd> link = std::move(*sys::make_packet_pair());
  UniqueFd ask;
  ToSession session{link.first, ask};
  DriverChannel channel = std::move(*DriverChannel::make(static_cast<uid_t>(-1)));
  UniqueFd requests{::dup(channel.driver_ends()[0])};
  UniqueFd replies{::dup(channel.driver_ends()[1])};
  std::string interrupts_sent;
  Interrupts interrupts{
      loop,
      {.interrupt = [this] { interrupts_sent += 'i'; }, .unheard = [] {}, .end_children = [] {}},
      {.repeats = 1h, .repeats_to_hearer = 1h, .children_end = 1h, .grace = 1ms}};
  Driver driver{.language = "python", .inspects = true};
  sys::Pipe out = std::move(*sys::make_pipe());
  sys::Pipe err = std::move(*sys::make_pipe());
  sys::Pipe shown = std::move(*sys::make_pipe());
  CellTurns cells{context, call, sandbox, session};
  Questions questions{context, session, cells};

  void SetUp() override {
    const LivingInterpreter living{
        .loop = loop, .channel = channel, .interrupts = interrupts, .driver = driver};
    cells.take_of_cell({.attempts = [] { return run::NetworkTrouble(); },
                        .explain = [](Outcome&, const std::string&, const auto&) {}});
    ASSERT_TRUE(cells.attach(living, std::move(out.read), std::move(err.read)));
    questions.attach(living);
    const auto hear = [this](const Json& message) {
      const auto position = cells.position_of_message();
      EXPECT_TRUE(questions.take(message) || cells.take(message, position));
    };
    ASSERT_TRUE(channel.attach(loop, {.arrived = [this] { cells.note_arrival(); },
                                      .message = hear,
                                      .broken = [](const std::string&) {}}));
  }
  void TearDown() override { channel.detach(); }

  void begin(TestClient& client, const std::string& code) {
    std::vector<UniqueFd> fds;
    fds.push_back(client.connection());
    fds.emplace_back(::dup(shown.write.get()));
    fds.emplace_back(::dup(shown.write.get()));
    cells.accept({.code = code}, std::move(fds));
  }
  void ask_about(TestClient& client, const std::string& code) {
    std::vector<UniqueFd> fds;
    fds.push_back(client.connection());
    questions.accept({.question = protocol::Question::completeness, .code = code}, std::move(fds));
  }
  /// What the driver is asked next.
  [[nodiscard]] Json asked() {
    pollfd ready{.fd = requests.get(), .events = POLLIN, .revents = 0};
    while (::poll(&ready, 1, 0) == 0) EXPECT_TRUE(loop.run_once());
    std::string text(4096, '\0');
    text.resize(static_cast<std::size_t>(::read(requests.get(), text.data(), text.size())));
    return Json::parse(text.substr(text.find('\n') + 1));
  }
  [[nodiscard]] bool is_asked() const {
    pollfd ready{.fd = requests.get(), .events = POLLIN, .revents = 0};
    return ::poll(&ready, 1, 0) == 1;
  }
  void say(const Json& message) {
    const std::string text = message.dump();
    EXPECT_TRUE(sys::write_all(replies.get(), std::to_string(text.size()) + "\n" + text));
  }
  [[nodiscard]] Json answer_to(TestClient& client) {
    while (!client.has_answer()) EXPECT_TRUE(loop.run_once());
    return client.answer();
  }
  [[nodiscard]] int answered() const {
    int count = 0;
    for (Note note{}; ::recv(link.second.get(), &note, sizeof note, MSG_DONTWAIT) > 0;)
      count += note.what == Note::What::answered ? 1 : 0;
    return count;
  }
  static Json done(const Json& request) {
    return {{"event", "done"},
            {"nonce", request["nonce"]},
            {"count", request["count"]},
            {"ok", true},
            {"ended", false}};
  }
};

TEST_F(CellsTest, RunOneAfterTheOther) {
  TestClient first;
  TestClient second;
  begin(first, "1");
  begin(second, "2");
  cells.note_ready();
  const Json request = asked();
  EXPECT_EQ(request["code"], "1");
  EXPECT_FALSE(is_asked());
  ASSERT_TRUE(sys::write_all(out.write.get(), "one\n"));
  say(done(request));
  const Json cell = answer_to(first)["cell"];
  EXPECT_EQ(cell["stdout"]["bytes"], 4);
  EXPECT_EQ(sandbox.renewed, 1);
  const Json next = asked();
  EXPECT_EQ(next["code"], "2");
  say(done(next));
  EXPECT_EQ(answer_to(second)["cell"]["stdout"]["bytes"], 0);
  EXPECT_EQ(cells.count(), 2U);
  EXPECT_EQ(answered(), 2);
  EXPECT_FALSE(sandbox.ended);
}

TEST_F(CellsTest, WaitForTheirInterpreter) {
  TestClient client;
  begin(client, "1");
  bool later = false;
  loop.after(10ms, [&] { later = true; });
  while (!later) ASSERT_TRUE(loop.run_once());
  EXPECT_FALSE(is_asked());
  cells.note_ready();
  EXPECT_EQ(asked()["code"], "1");
}

TEST_F(CellsTest, ThatSwallowAnInterruptEndTheirInterpreter) {
  TestClient client;
  begin(client, "1");
  cells.note_ready();
  (void)asked();
  cells.interrupt();
  EXPECT_EQ(interrupts_sent, "i");
  while (!sandbox.ended) ASSERT_TRUE(loop.run_once());
  EXPECT_NE(cells.unstopped().find("did not stop"), std::string::npos) << cells.unstopped();
}

TEST_F(CellsTest, ThatStopInTimeDoNot) {
  TestClient client;
  begin(client, "1");
  cells.note_ready();
  const Json request = asked();
  cells.interrupt();
  say(done(request));
  EXPECT_EQ(answer_to(client)["cell"]["outcome"]["status"], "interrupted");
  EXPECT_TRUE(cells.unstopped().empty());
}

TEST_F(CellsTest, ThatWouldSeeDeniedNamesDoNotBegin) {
  sandbox.hides = false;
  TestClient client;
  cells.note_ready();
  begin(client, "1");
  EXPECT_EQ(client.answer()["failure"]["code"], "cannot-hide");
  EXPECT_FALSE(is_asked());
  EXPECT_EQ(answered(), 1);
}

TEST_F(CellsTest, AQuestionIsAskedBetweenCells) {
  cells.note_ready();
  TestClient client;
  TestClient waits;
  ask_about(client, "if x:");
  const Json request = asked();
  EXPECT_EQ(request["what"], "completeness");
  begin(waits, "1");
  EXPECT_FALSE(is_asked());
  say({{"event", "inspected"}, {"nonce", request["nonce"]}, {"status", "incomplete"}});
  EXPECT_EQ(answer_to(client)["status"], "incomplete");
  EXPECT_EQ(asked()["code"], "1");
}

TEST_F(CellsTest, AQuestionDoesNotWaitForACell) {
  TestClient runs;
  TestClient client;
  begin(runs, "1");
  cells.note_ready();
  (void)asked();
  ask_about(client, "if x:");
  const Json answer = answer_to(client);
  EXPECT_EQ(answer["context"], "mine");
  EXPECT_FALSE(answer.contains("status"));
}

}  // namespace
}  // namespace sbx::session
