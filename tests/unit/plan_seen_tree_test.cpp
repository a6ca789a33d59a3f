#include <gtest/gtest.h>

#include "plan/seen_tree.hpp"

namespace sbx::plan {
namespace {

TEST(SeenTree, KnowsWhatWasThere) {
  SeenTree tree;
  tree.add_directory(".", {.device = 1, .inode = 2}, 0755);
  tree.add_name(".", "file");
  tree.add_directory("sub", {.device = 1, .inode = 3}, 0700);
  tree.add_name(".", "profile");
  tree.add_name("sub", "in");
  tree.add_directory("sub/deep", {.device = 1, .inode = 4}, 0711);
  tree.add_name("sub", "inner");
  tree.add_name("sub/deep", "file");
  ASSERT_NE(tree.directory("sub/deep"), nullptr);
  EXPECT_EQ(tree.directory("sub/deep")->file, (FileId{.device = 1, .inode = 4}));
  EXPECT_EQ(tree.directory("sub/deep")->mode, 0711U);
  for (const char* name : {"file", "profile", "sub/in", "sub/inner", "sub/deep/file"})
    EXPECT_TRUE(tree.has_name(name)) << name;
}

TEST(SeenTree, KnowsNothingElse) {
  SeenTree tree;
  tree.add_directory(".", {}, 0755);
  tree.add_name(".", "profile");
  tree.add_directory("sub", {}, 0755);
  tree.add_directory("empty", {}, 0755);
  tree.add_name("sub", "a");
  tree.add_name("nowhere", "b");
  for (const char* name : {"file", "prof", "rofile", "a", "sub", "sub/profile", "sub/b", "b",
                           "empty/a", "nowhere/b", "sub/"})
    EXPECT_FALSE(tree.has_name(name)) << name;
  EXPECT_EQ(tree.directory("profile"), nullptr);
  EXPECT_EQ(tree.directory("nowhere"), nullptr);
}

}  // namespace
}  // namespace sbx::plan
