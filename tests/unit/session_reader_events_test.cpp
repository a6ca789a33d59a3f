#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "session/reader_events.hpp"
#include "session_fixture.hpp"

namespace sbx::session {
namespace {

struct ReaderEventsTest : testing::Test {
  TestClient client;
  UniqueFd connection = client.connection();
  std::uint64_t now = 1;
  ReaderEvents events{connection.get(), [this] { return now; }};

  /// What the client has not read: numbers of bytes, and words.
  std::vector<std::string> heard() {
    std::vector<std::string> all;
    while (client.has_answer()) {
      const auto event = protocol::answer_from<protocol::ReaderEvent>(client.answer());
      EXPECT_TRUE(event);
      all.push_back(event->said.value_or(std::to_string(event->copied)));
    }
    return all;
  }
  using Heard = std::vector<std::string>;
};

TEST_F(ReaderEventsTest, TellOfCopiesTenTimesASecond) {
  events.copied(5);
  events.copied(5);
  EXPECT_EQ(heard(), Heard{"5"});
  now += 99'999;
  events.copied(5);
  EXPECT_EQ(heard(), Heard{});
  now += 1;
  events.copied(5);
  EXPECT_EQ(heard(), Heard{"20"});
  events.copied(0);
  events.copied(3);
  EXPECT_EQ(heard(), (Heard{"0", "3"}));
}

TEST_F(ReaderEventsTest, SayWordsAtOnce) {
  events.progress()(5);
  events.person().tell("sbx: waiting\n");
  events.person().tell("");
  EXPECT_EQ(heard(), (Heard{"5", "sbx: waiting\n"}));
}

TEST_F(ReaderEventsTest, WaitForNoClientAndKeepRoomForTheAnswer) {
  for (int i = 0; i < 10'000; ++i, now += 1'000'000) events.copied(1);
  events.say("sbx: waiting\n");
  EXPECT_TRUE(protocol::send(connection.get(), protocol::DoneAnswer{}));
  std::vector<Json> all;
  while (client.has_answer()) all.push_back(client.answer());
  ASSERT_GT(all.size(), 2U);
  EXPECT_LT(all.size(), 1000U);
  EXPECT_TRUE(all.back().contains("done"));
  EXPECT_EQ(all[all.size() - 2]["said"], "sbx: waiting\n");
}

TEST_F(ReaderEventsTest, GoOnWithoutTheirClient) {
  client.leave();
  events.copied(1);
  events.say("sbx: waiting\n");
}

}  // namespace
}  // namespace sbx::session
