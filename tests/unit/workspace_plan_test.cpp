#include <gtest/gtest.h>

#include "workspace/apply.hpp"
#include "workspace/copy.hpp"

namespace sbx::workspace {
namespace {

plan::Plan plan_with(plan::mount::Payload payload, bool read_only) {
  plan::Plan plan;
  plan.mounts.push_back({.target = "/home/me/project",
                         .payload = std::move(payload),
                         .rights = read_only ? plan::Rights{} : plan::kWritable});
  return plan;
}

TEST(WorkspaceCopy, OnlyAPrivateWritableWorkspaceIsOne) {
  const plan::mount::Overlay overlay{{.source = {.path = "/home/me/project"}}};
  const plan::mount::Bind bind{.source = {.path = "/home/me/project"}};
  EXPECT_TRUE(has_overlay(plan_with(overlay, false)));
  EXPECT_FALSE(has_overlay(plan_with(overlay, true)));
  EXPECT_FALSE(has_copy(plan_with(bind, false)));
  EXPECT_TRUE(has_copy(plan_with(plan::mount::Scratch{"work"}, false)));
  EXPECT_FALSE(has_copy(plan_with(plan::mount::Scratch{"tmp"}, false)));
}

TEST(WorkspaceCopy, ThePathBelongsToTheDeepestLayer) {
  Copy copy{.directory = "/w"};
  for (const char* prefix : {".", "sub", "sub/deep"}) copy.layers.push_back({.prefix = prefix});
  EXPECT_EQ(place_of(copy, "a").path, "a");
  EXPECT_EQ(place_of(copy, "subway").layer, copy.layers.data());
  EXPECT_EQ(place_of(copy, "sub/x").path, "x");
  EXPECT_EQ(place_of(copy, "sub/deep/y").path, "y");
  EXPECT_EQ(place_of(copy, "sub/deep").path, ".");
}

TEST(WorkspaceSelection, LeavesOutWhatMustBeNamedAndWhatIsNoFile) {
  const Copy copy{.directory = "/w"};
  ChangeSet changes;
  for (const char* path : {".envrc", "a.c", "b.h", "p.toml"})
    changes.changes.push_back({.path = path, .change = ChangeKind::modified});
  changes.changes.push_back(
      {.path = "pipe", .change = ChangeKind::created, .type = FileType::fifo});

  const Selection all = select(copy, changes, {}, {"/w/p.toml"});
  EXPECT_EQ(all.changes.size(), 2U);
  EXPECT_EQ(all.left.size(), 3U);
  EXPECT_EQ(select(copy, changes, {"*.c"}, {}).changes.size(), 1U);
  EXPECT_EQ(select(copy, changes, {".envrc"}, {}).changes.size(), 1U);
  EXPECT_EQ(select(copy, changes, {".env*"}, {}).changes.size(), 0U);
}

}  // namespace
}  // namespace sbx::workspace
