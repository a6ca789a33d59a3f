#include <gtest/gtest.h>

#include "session/cell_ends.hpp"

namespace sbx::session {
namespace {

TEST(CellEnds, TheCauseOfALostStateNamesWhatEndedTheCell) {
  EXPECT_EQ(cause_of(end_by_time(Milliseconds{2000})), "a cell had spent its wall_time");
  EXPECT_EQ(cause_of(end_by_interrupt()), "sbx session interrupt");
  EXPECT_EQ(cause_of(end_without_reader()),
            "a cell was cancelled: cancelled by SIGPIPE (the reader of its output has left)");
  EXPECT_EQ(cause_of({.how = record::CellEnd::How::cancelled, .signal = 15}),
            "a cell was cancelled by SIGTERM");
}

TEST(CellEnds, TheLimitOfTimeIsNamed) {
  EXPECT_EQ(end_by_time(Milliseconds{2000}).detail,
            "wall-time budget of 2 s spent (limits.wall_time)");
}

}  // namespace
}  // namespace sbx::session
