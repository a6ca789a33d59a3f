#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <list>
#include <string>
#include <utility>
#include <vector>

#include "session/spare_contexts.hpp"
#include "session/worker_protocol.hpp"
#include "session_fixture.hpp"

namespace sbx::session {
namespace {

/// The other ends of a spare that is no process.
struct FakeSpare {
  std::string language;
  UniqueFd process;  ///< writing to it ends the spare
  UniqueFd link;
  UniqueFd ask;

  void say(Note::What what, std::int32_t value = 0) const {
    const Note note{what, value};
    ASSERT_EQ(::send(link.get(), &note, sizeof note, 0), static_cast<ssize_t>(sizeof note));
  }
};

struct SparesTest : testing::Test {
  EventLoop loop = std::move(*EventLoop::make());
  std::list<FakeSpare> fakes;
  std::vector<Worker> dismissed;
  bool is_resting = true;
  bool has_room = true;
  bool can_start = true;
  int starts = 0;
  std::size_t living = 1;
  SpareContexts spares{
      loop,
      4,
      {.start = [this](const std::string& language) { return start(language); },
       .rests = [this] { return is_resting; },
       .has_room = [this] { return has_room; },
       .living = [this] { return living; },
       .dismiss = [this](Worker worker) { dismissed.push_back(std::move(worker)); }}};

  Result<Worker> start(const std::string& language) {
    ++starts;
    if (!can_start) return fail(Error{.kind = ErrorKind::host, .code = "cannot-clone"});
    auto process = sys::make_stream_pair();
    auto link = sys::make_packet_pair();
    auto ask = sys::make_packet_pair();
    fakes.push_back({.language = language,
                     .process = std::move(process->second),
                     .link = std::move(link->second),
                     .ask = std::move(ask->second)});
    return Worker{.process = std::move(process->first),
                  .link = std::move(link->first),
                  .ask = std::move(ask->first)};
  }
  /// Until all that is due now has been done: another timer comes after those of the spares.
  void settle() {
    bool over = false;
    loop.after(std::chrono::milliseconds(150), [&over] { over = true; });
    while (!over) ASSERT_TRUE(loop.run_once());
  }
  void use(const std::string& language) {
    spares.note_use(language);
    settle();
  }
};

TEST_F(SparesTest, OneOfEachLanguageThatWasUsedStartsOnceTheSessionRests) {
  is_resting = false;
  use("python");
  EXPECT_EQ(starts, 0);
  is_resting = true;
  spares.look_soon();
  settle();
  ASSERT_EQ(fakes.size(), 1U);
  EXPECT_EQ(fakes.front().language, "python");
  use("python");
  EXPECT_EQ(starts, 1);
  use("r");
  EXPECT_EQ(fakes.back().language, "r");
}

TEST_F(SparesTest, ATakenOneIsNobodyElses) {
  use("python");
  fakes.front().say(Note::What::began, 7);
  settle();
  EXPECT_FALSE(spares.take("r"));
  const auto taken = spares.take("python");
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->init, 7);
  EXPECT_FALSE(spares.take("python"));
  EXPECT_TRUE(dismissed.empty());
  // Its words are for whoever has taken it.
  fakes.front().say(Note::What::ready);
  settle();
  EXPECT_TRUE(dismissed.empty());
}

TEST_F(SparesTest, OneThatDiesIsReplacedAfterTheNextUseOnly) {
  use("python");
  fakes.back().say(Note::What::gone);
  settle();
  EXPECT_EQ(dismissed.size(), 1U);
  spares.look_soon();
  settle();
  EXPECT_EQ(starts, 1);
  use("python");
  EXPECT_EQ(starts, 2);
  ASSERT_EQ(::write(fakes.back().process.get(), "x", 1), 1);
  settle();
  EXPECT_EQ(dismissed.size(), 2U);
  EXPECT_FALSE(spares.take("python"));
}

/// Its start wants something of the network: it is no plain interpreter.
TEST_F(SparesTest, OneThatAsksSomethingEnds) {
  use("python");
  ASSERT_EQ(::send(fakes.back().ask.get(), "x", 1, 0), 1);
  settle();
  EXPECT_EQ(dismissed.size(), 1U);
}

TEST_F(SparesTest, OneThatCannotStartIsNotTriedAgain) {
  can_start = false;
  use("python");
  spares.look_soon();
  settle();
  EXPECT_EQ(starts, 1);
  EXPECT_FALSE(spares.has_any());
}

TEST_F(SparesTest, APlaceStaysFree) {
  living = 3;
  use("python");
  EXPECT_EQ(starts, 0);
  living = 2;
  use("python");
  EXPECT_EQ(starts, 1);
  use("r");
  EXPECT_EQ(starts, 1);
  spares.fit(2);
  EXPECT_TRUE(spares.has_any());
  spares.fit(3);
  EXPECT_FALSE(spares.has_any());
  EXPECT_EQ(dismissed.size(), 1U);
}

TEST_F(SparesTest, TheyGoWhereBudgetsHaveNoRoomAndWithTheLastContext) {
  use("python");
  has_room = false;
  spares.look_soon();
  settle();
  EXPECT_EQ(dismissed.size(), 1U);
  use("python");
  EXPECT_EQ(starts, 1);
  has_room = true;
  use("python");
  living = 0;
  spares.look_soon();
  settle();
  EXPECT_EQ(dismissed.size(), 2U);
}

}  // namespace
}  // namespace sbx::session
