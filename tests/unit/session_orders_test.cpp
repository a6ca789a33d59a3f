#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "session/context_orders.hpp"
#include "session/end_words.hpp"

namespace sbx::session {
namespace {

struct ContextOrdersTest : testing::Test {
  UniqueFd session;
  UniqueFd link;
  std::vector<std::string> heard;
  std::optional<ContextOrders> orders;

  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    session = UniqueFd(ends[0]);
    link = UniqueFd(ends[1]);
    const auto hears = [this](const char* what) {
      return [this, what] { heard.emplace_back(what); };
    };
    orders.emplace(
        link.get(),
        ContextOrders::Hooks{
            .cell =
                [this](const protocol::EvalRequest& request, const std::vector<UniqueFd>& fds) {
                  heard.push_back("cell " + request.code + " " + std::to_string(fds.size()));
                },
            .question = [this](const protocol::InspectRequest& request,
                               const auto&) { heard.push_back("question " + request.code); },
            .garbled = hears("garbled"),
            .interrupt = hears("interrupt"),
            .spend =
                [this](Budget budget) { heard.push_back(std::string("spend ") + name_of(budget)); },
            .signal = [this](int signal) { heard.push_back("signal " + std::to_string(signal)); },
            .cancel =
                [this](EndCause cause) {
                  heard.emplace_back(cause == EndCause::lifetime ? "lifetime" : "cancel");
                },
            .end = hears("end"),
            .claim = hears("claim"),
            .closed = hears("closed")});
  }
  void say(Note::What what, std::int32_t value = 0) const {
    const Note note{.what = what, .value = value};
    ASSERT_EQ(::send(session.get(), &note, sizeof note, 0), static_cast<ssize_t>(sizeof note));
  }
  template <class Asked>
  void ask(const Asked& request, const std::vector<int>& fds = {}) const {
    say(Note::What::cell);
    ASSERT_TRUE(protocol::send(session.get(), request, fds));
  }
};

TEST_F(ContextOrdersTest, GoToTheirHooks) {
  say(Note::What::interrupt);
  say(Note::What::spend, static_cast<std::int32_t>(Budget::disk));
  say(Note::What::signal, 10);
  say(Note::What::cancel, static_cast<std::int32_t>(EndCause::lifetime));
  say(Note::What::end);
  say(Note::What::claim);
  say(Note::What::ready);  // a worker's own note: nobody says that to it
  for (int i = 0; i < 7; ++i) orders->take();
  EXPECT_EQ(heard, (std::vector<std::string>{"interrupt", "spend disk", "signal 10", "lifetime",
                                             "end", "claim"}));
}

TEST_F(ContextOrdersTest, BringCellsAndQuestionsWithTheirDescriptors) {
  ask(protocol::EvalRequest{.code = "1"}, {session.get(), session.get()});
  ask(protocol::InspectRequest{.code = "2"});
  ask(protocol::InfoRequest{});
  for (int i = 0; i < 3; ++i) orders->take();
  EXPECT_EQ(heard, (std::vector<std::string>{"cell 1 2", "question 2", "garbled"}));
}

TEST_F(ContextOrdersTest, EndWithTheLink) {
  session.reset();
  orders->take();
  EXPECT_EQ(heard, std::vector<std::string>{"closed"});
}

TEST_F(ContextOrdersTest, LeaveOnlyTheirCellsAtTheEnd) {
  say(Note::What::interrupt);
  ask(protocol::EvalRequest{.code = "late"});
  say(Note::What::end);
  ASSERT_EQ(::shutdown(link.get(), SHUT_RD), 0);
  orders->take_cells();
  EXPECT_EQ(heard, std::vector<std::string>{"cell late 0"});
}

TEST(EndWords, AreOnlySaidToWhoDoesNotKnowTheCause) {
  for (const EndCause cause : {EndCause::kill, EndCause::stop, EndCause::lifetime})
    EXPECT_NE(words_of_end(cause), nullptr);
  EXPECT_EQ(words_of_end(EndCause::owner), nullptr);
}

}  // namespace
}  // namespace sbx::session
