#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "workspace/placeholders.hpp"

namespace sbx::workspace {
namespace {

namespace fs = std::filesystem;

class PlaceholdersTest : public testing::Test {
 protected:
  PlaceholdersTest() {
    std::string name = testing::TempDir() + "/sbx-placeholders-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    root_ = fs::canonical(name);
  }
  ~PlaceholdersTest() override { fs::remove_all(root_); }

  [[nodiscard]] plan::Plan plan() const {
    struct stat facts{};
    EXPECT_EQ(::stat(root_.c_str(), &facts), 0);
    plan::Plan plan;
    for (const char* name : {"commondir", "config.worktree", "hooks"}) {
      const bool is_directory = name == std::string_view("hooks");
      plan.placeholders.push_back(
          {.directory = root_,
           .device = facts.st_dev,
           .inode = facts.st_ino,
           .name = name,
           .content = name == std::string_view("commondir") ? "././.\n" : "",
           .is_directory = is_directory,
           .target = "/in/" + std::string(name)});
      plan.mounts.push_back(
          {.target = "/in/" + std::string(name), .payload = plan::mount::ReadOnly{}});
    }
    plan.live.push_back({.source = root_, .guarded = {"commondir", "config.worktree", "hooks"}});
    return plan;
  }
  [[nodiscard]] bool is_there(const char* name) const { return fs::exists(root_ / name); }

  fs::path root_;
};

TEST_F(PlaceholdersTest, AreThereUntilTheLastUserIsGone) {
  plan::Plan first = plan();
  plan::Plan second = plan();
  std::optional<Placeholders> one(std::in_place, first);
  EXPECT_TRUE(is_there("commondir") && is_there("config.worktree") && is_there("hooks"));
  std::optional<Placeholders> other(std::in_place, second);
  one.reset();
  EXPECT_TRUE(is_there("commondir"));
  EXPECT_EQ(second.mounts.size(), 3U);
  other.reset();
  EXPECT_FALSE(is_there("commondir"));
}

TEST_F(PlaceholdersTest, WhatWasThereStays) {
  std::ofstream(root_ / "commondir") << "../x\n";
  fs::create_directory(root_ / "hooks");
  plan::Plan made = plan();
  {
    const Placeholders placeholders(made);
  }
  EXPECT_TRUE(is_there("commondir") && is_there("hooks"));
  EXPECT_FALSE(is_there("config.worktree"));
}

TEST_F(PlaceholdersTest, WhatAKilledSbxLeftIsRemoved) {
  std::ofstream(root_ / "commondir") << "././.\n";
  plan::Plan made = plan();
  {
    const Placeholders placeholders(made);
  }
  EXPECT_FALSE(is_there("commondir"));
}

TEST_F(PlaceholdersTest, AStepWhoseNameCannotBeMadeIsLeftOut) {
  plan::Plan made = plan();
  made.placeholders[0].inode += 1;  // another directory is there now
  {
    const Placeholders placeholders(made);
  }
  EXPECT_EQ(made.mounts.size(), 2U);
  EXPECT_EQ(made.live[0].guarded.size(), 2U);
}

}  // namespace
}  // namespace sbx::workspace
