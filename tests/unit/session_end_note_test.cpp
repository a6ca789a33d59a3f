#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "protocol/answers.hpp"
#include "protocol/packet.hpp"
#include "session/end_note.hpp"

namespace sbx::session {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct EndNoteTest : testing::Test {
  EndNote note;
  UniqueFd reader;

  void expire() {
    note.begin("after 30m without use", true);
    reader = std::move(*note.expect_answer());
  }
};

TEST_F(EndNoteTest, ACommandThatStopsTheSessionNeedsNone) {
  reader = std::move(*note.expect_answer());
  EXPECT_FALSE(note.take(true));
}

TEST_F(EndNoteTest, TheFirstReasonCounts) {
  expire();
  note.begin("by a signal", false);
  ASSERT_TRUE(protocol::send(reader.get(), protocol::BroughtOutAnswer{}));
  EXPECT_EQ(note.take(true)->cause, "after 30m without use");
}

TEST_F(EndNoteTest, TheSetIsNamedAndWhatItHasNot) {
  expire();
  ASSERT_TRUE(protocol::send(
      reader.get(), protocol::BroughtOutAnswer{
                        .kept = protocol::KeptAnswer{
                            .name = "work",
                            .changes = 2,
                            .lost = std::vector<protocol::LeftFacts>{{.path = "/tmp/a"},
                                                                     {.path = "/tmp/b"},
                                                                     {.path = "/tmp/c"},
                                                                     {.path = "/tmp/d"}}}}));
  const auto remains = note.take(true);
  EXPECT_EQ(remains->set, "work");
  EXPECT_EQ(remains->kept, 2U);
  EXPECT_EQ(remains->lost, 4U);
  EXPECT_THAT(remains->paths, ElementsAre("/tmp/a", "/tmp/b", "/tmp/c"));
  EXPECT_EQ(remains->cure, "");
}

TEST_F(EndNoteTest, AFailureIsTold) {
  expire();
  ASSERT_TRUE(protocol::send(reader.get(),
                             Error{.kind = ErrorKind::host, .code = "x", .message = "disk full"}));
  reader.reset();
  EXPECT_THAT(note.take(true)->cure, HasSubstr("disk full"));
}

TEST_F(EndNoteTest, AReaderThatIsNotDoneIsNotAwaited) {
  expire();
  EXPECT_THAT(note.take(true)->cure, HasSubstr("longer than a minute"));
}

/// Variables may be lost, which have no names.
TEST_F(EndNoteTest, WhereNothingWasChangedOnlyAnExpiryIsTold) {
  expire();
  ASSERT_TRUE(protocol::send(reader.get(), protocol::BroughtOutAnswer{}));
  const auto remains = note.take(false);
  EXPECT_EQ(remains->kept + remains->lost, 0U);
  EXPECT_EQ(remains->cure, "");
  EndNote other;
  other.begin("by a signal", false);
  reader = std::move(*other.expect_answer());
  ASSERT_TRUE(protocol::send(reader.get(), protocol::BroughtOutAnswer{}));
  EXPECT_FALSE(other.take(false));
}

}  // namespace
}  // namespace sbx::session
