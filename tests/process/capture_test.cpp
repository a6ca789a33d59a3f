#include "supervise/streams/capture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace sbx::supervise {
namespace {

Stream captured(std::size_t cap, std::string_view text, std::size_t block) {
  Capture capture(Bytes{cap});
  for (std::size_t at = 0; at < text.size(); at += block) {
    const std::string_view part = text.substr(at, block);
    const auto space = capture.space();
    if (space.size() < part.size()) {
      capture.append(part);
      continue;
    }
    std::memcpy(space.data(), part.data(), part.size());
    capture.commit(part.size());
  }
  return capture.take();
}

TEST(Capture, IsWholeUpToTheCap) {
  for (const std::size_t length : {0U, 1U, 4U, 5U, 9U, 10U}) {
    const std::string text = std::string("0123456789").substr(0, length);
    const Stream stream = captured(10, text, 3);
    EXPECT_EQ(stream.text, text);
    EXPECT_FALSE(stream.truncated);
    EXPECT_EQ(stream.head_bytes + stream.tail_bytes, length);
  }
}

TEST(Capture, KeepsFirstAndLastHalfForEverySplit) {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += static_cast<char>('a' + i % 23);
  for (const std::size_t cap : {10U, 1000U, 40'001U, 200'000U})
    for (const std::size_t block : {7U, 4096U, 65536U}) {
      const Stream stream = captured(cap, text, block);
      const std::size_t tail = cap / 2;
      const std::size_t head = cap - tail;
      EXPECT_EQ(stream.text, text.substr(0, head) + text.substr(text.size() - tail))
          << cap << " in blocks of " << block;
      EXPECT_EQ(stream.head_bytes, head);
      EXPECT_EQ(stream.tail_bytes, tail);
      EXPECT_EQ(stream.bytes, text.size());
    }
}

TEST(Capture, ACapOfNothingKeepsNothing) {
  const Stream stream = captured(0, "abc", 3);
  EXPECT_EQ(stream.text, "");
  EXPECT_EQ(stream.bytes, 3U);
  EXPECT_TRUE(stream.truncated);
}

TEST(Capture, HeadAndTailTogetherAreTheTextAndNeverOverTheCap) {
  const Stream stream = captured(10, "abcd€€€€wxyz", 100);  // both cuts are inside a euro sign
  EXPECT_EQ(stream.text->size(), stream.head_bytes + stream.tail_bytes);
  EXPECT_LE(stream.head_bytes + stream.tail_bytes, 10U);
}

}  // namespace
}  // namespace sbx::supervise
