#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "changes/diff.hpp"

namespace sbx::changes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// The new text, made from the old one and a diff with full context.
std::string patched(const std::string& before, const std::vector<std::string>& diff) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < before.size();) {
    const auto end = before.find('\n', at);
    lines.push_back(before.substr(at, end - at));
    at = end + 1;
  }
  std::string after;
  std::size_t next = 0;
  for (const std::string& line : diff) {
    if (line.starts_with("@@")) {
      const std::string numbers = line.substr(4);
      std::size_t first = std::stoul(numbers);
      if (numbers.find(",0 ") == std::string::npos || numbers.find(",0 ") > numbers.find('+'))
        --first;
      while (next < first) after += lines[next++] + "\n";
    } else if (line.front() == '+') {
      after += line.substr(1) + "\n";
    } else {
      EXPECT_EQ(line.substr(1), lines[next]);
      if (line.front() == ' ') after += lines[next] + "\n";
      ++next;
    }
  }
  while (next < lines.size()) after += lines[next++] + "\n";
  return after;
}

TEST(WorkspaceDiff, ShowsChangedLinesWithThreeOfContext) {
  EXPECT_THAT(unified_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", 100),
              ElementsAre("@@ -2,7 +2,7 @@", " 2", " 3", " 4", "-5", "+five", " 6", " 7", " 8"));
}

TEST(WorkspaceDiff, IsEmptyForEqualTexts) {
  EXPECT_THAT(unified_diff("a\n", "a\n", 100), IsEmpty());
  EXPECT_THAT(unified_diff("", "", 100), IsEmpty());
}

TEST(WorkspaceDiff, HandlesEmptySides) {
  EXPECT_THAT(unified_diff("", "a\nb\n", 100), ElementsAre("@@ -0,0 +1,2 @@", "+a", "+b"));
  EXPECT_THAT(unified_diff("a\n", "", 100), ElementsAre("@@ -1 +0,0 @@", "-a"));
}

TEST(WorkspaceDiff, LinesOfANewTextAreBounded) {
  EXPECT_THAT(added_lines("", 2), IsEmpty());
  EXPECT_THAT(added_lines("a\nb", 2), ElementsAre("+a", "+b"));
  EXPECT_THAT(added_lines("a\nb\nc\nd\n", 2), ElementsAre("+a", "+b", "… 2 more lines …"));
}

TEST(WorkspaceDiff, DistantChangesAreHunksOfTheirOwn) {
  std::string before;
  for (int i = 0; i < 40; ++i) before += std::to_string(i) + "\n";
  std::string after = before;
  after.replace(after.find("\n5\n"), 3, "\nx\n").replace(after.find("\n30\n"), 4, "\ny\n");
  const auto diff = unified_diff(before, after, 100);
  EXPECT_EQ(std::ranges::count_if(diff, [](const auto& line) { return line.starts_with("@@"); }),
            2);
  EXPECT_EQ(patched(before, diff), after);
}

TEST(WorkspaceDiff, LeadsFromTheOldTextToTheNewForRandomTexts) {
  unsigned state = 1;
  const auto random = [&state](unsigned below) {
    state = state * 1'103'515'245U + 12'345U;
    return (state >> 16) % below;
  };
  for (int round = 0; round < 300; ++round) {
    std::string before;
    std::string after;
    for (unsigned i = random(30); i > 0; --i)
      before += std::string(1, static_cast<char>('a' + random(4))) + "\n";
    for (unsigned i = random(30); i > 0; --i)
      after += std::string(1, static_cast<char>('a' + random(4))) + "\n";
    ASSERT_EQ(patched(before, unified_diff(before, after, 1000)), after) << before << "->\n"
                                                                         << after;
  }
}

TEST(WorkspaceDiff, IsBoundedInLinesAndForTextsWithNothingInCommon) {
  std::string before;
  std::string after;
  for (int i = 0; i < 20'000; ++i) {
    before += "a" + std::to_string(i) + "\n";
    after += "b" + std::to_string(i) + "\n";
  }
  const auto diff = unified_diff(before, after, 50);
  EXPECT_EQ(diff.size(), 51U);
  EXPECT_EQ(diff.back(), "… 39951 more lines …");
}

TEST(WorkspaceDiff, ZeroBytesMakeAFileBinary) {
  EXPECT_FALSE(is_text(std::string("a\0b", 3)));
  EXPECT_TRUE(is_text("a\xff\n"));
}

}  // namespace
}  // namespace sbx::changes
