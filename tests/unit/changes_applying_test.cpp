#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "changes/applying.hpp"

namespace sbx::changes {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A workspace of the host (`lower`), and the one file that a run wrote over it (`upper`).
class ApplyingTest : public testing::Test {
 protected:
  ApplyingTest() {
    std::string name = testing::TempDir() + "/sbx-applying-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    root_ = std::filesystem::canonical(name);
    for (const char* each : {"lower", "upper"}) std::filesystem::create_directory(root_ / each);
    std::ofstream(root_ / "upper/new.txt") << "text\n";
    copy_.directory = root_ / "lower";
    copy_.is_overlay = true;
    copy_.hidden = std::make_unique<plan::DenyRules>(std::vector<plan::DenyRule>{});
    copy_.started = workspace::file_clock();
    copy_.layers.push_back({.upper = open("upper"), .lower = open("lower"), .prefix = "."});
  }
  ~ApplyingTest() override { std::filesystem::remove_all(root_); }

  [[nodiscard]] UniqueFd open(const std::string& name) const {
    return UniqueFd(::open((root_ / name).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  Result<ApplyEnd> apply(const Request& request, const Person& person) {
    return apply_changes(copy_, *workspace::read_changes(copy_), request, {}, person);
  }
  [[nodiscard]] bool is_applied() const { return std::filesystem::exists(root_ / "lower/new.txt"); }
  /// Says this, and is told what was told.
  [[nodiscard]] Person one_who_says(bool answer) {
    return {.hears = [this](const std::string& lines) { told_ += lines; },
            .answers =
                [this, answer](const std::string& question, int /*wake*/) {
                  question_ = question;
                  return answer;
                }};
  }

  std::filesystem::path root_;
  workspace::Copy copy_;
  std::string told_;
  std::string question_;
};

TEST_F(ApplyingTest, YesAppliesWhatTheQuestionShows) {
  const auto end = apply({}, one_who_says(true));
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->was_asked && end->wanted && is_applied());
  EXPECT_THAT(question_, HasSubstr("new.txt"));
  EXPECT_THAT(question_, HasSubstr("apply "));
  EXPECT_THAT(told_, Not(HasSubstr("[y/N]")));
}

TEST_F(ApplyingTest, NoAppliesNothingAndIsTold) {
  const auto end = apply({}, one_who_says(false));
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->wanted || is_applied());
  EXPECT_EQ(told_, "sbx: not applied: the answer was no\n");
}

TEST_F(ApplyingTest, WhereNobodyCanBeAskedTheAnswerIsNo) {
  EXPECT_EQ(check_asking(true, {}).error().code, "nobody-to-ask");
  EXPECT_TRUE(check_asking(false, {}));
  EXPECT_TRUE(check_asking(true, one_who_says(false)));
  const auto end = apply({}, {});
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->wanted || is_applied());
}

TEST_F(ApplyingTest, ASilentOneIsAskedAndToldNothing) {
  const auto end = apply({.silent = true}, one_who_says(true));
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->was_asked && is_applied());
  EXPECT_EQ(told_, "");
}

TEST_F(ApplyingTest, WithoutAQuestionWhatWasDoneIsTold) {
  const auto end = apply({.asks = false}, one_who_says(false));
  ASSERT_TRUE(end);
  EXPECT_TRUE(!end->was_asked && is_applied());
  EXPECT_EQ(question_, "");
  EXPECT_THAT(told_, HasSubstr("applied"));
}

/// A program makes as many names as it likes, and each of up to 255 bytes.
TEST_F(ApplyingTest, WhatIsBeyondTheBoundsIsCountedAndNothingIsApplied) {
  std::ofstream(root_ / "upper/other.txt") << "text\n";
  for (const workspace::MostFound& most :
       {workspace::MostFound{.changes = 1}, workspace::MostFound{.name_bytes = 15}}) {
    const auto changes = workspace::read_changes(copy_, most);
    ASSERT_TRUE(changes);
    EXPECT_EQ(changes->changes.size(), 1U);
    EXPECT_EQ(changes->left_out, 1U);
    const auto end = apply_changes(copy_, *changes, {}, {}, one_who_says(true));
    ASSERT_TRUE(end);
    EXPECT_FALSE(end->wanted || is_applied());
    EXPECT_THAT(told_,
                HasSubstr("not complete: at least 1 are beyond 500000 changes, or beyond 64 MiB"));
  }
  const auto all = workspace::read_changes(copy_, {.changes = 2, .name_bytes = 16});
  EXPECT_EQ(all->changes.size(), 2U);
  EXPECT_EQ(all->left_out, 0U);
}

}  // namespace
}  // namespace sbx::changes
