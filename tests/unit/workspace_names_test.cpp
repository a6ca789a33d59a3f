#include <gtest/gtest.h>

#include "workspace/copy.hpp"
#include "workspace/names.hpp"

namespace sbx::workspace {
namespace {

TEST(WorkspacePattern, AStarStaysWithinOneName) {
  EXPECT_TRUE(matches("*.png", "a.png"));
  EXPECT_FALSE(matches("*.png", "out/a.png"));
  EXPECT_TRUE(matches("out/*", "out/a"));
  EXPECT_FALSE(matches("out/*", "out/a/b"));
  EXPECT_TRUE(matches("[ab]?", "a1"));
  EXPECT_FALSE(matches("[ab]?", "c1"));
}

TEST(WorkspacePattern, TwoStarsAreAnyNumberOfDirectories) {
  EXPECT_TRUE(matches("**", "a/b/c"));
  EXPECT_TRUE(matches("out/**", "out/a/b"));
  EXPECT_FALSE(matches("out/**", "other/a"));
  EXPECT_TRUE(matches("**/x.xml", "x.xml"));
  EXPECT_TRUE(matches("**/x.xml", "a/b/x.xml"));
  EXPECT_TRUE(matches("a/**/b/**/c", "a/b/b/d/c"));
  EXPECT_FALSE(matches("a/**/b/**/c", "a/d/c"));
}

TEST(WorkspacePattern, IsQuickForHostilePatterns) {
  std::string path = "a";
  std::string pattern;
  for (int i = 0; i < 200; ++i) path += "/a";
  for (int i = 0; i < 100; ++i) pattern += "**/a/";
  EXPECT_FALSE(matches(pattern + "b", path));
  EXPECT_TRUE(matches(pattern + "a", path));
}

TEST(WorkspaceNames, OnlyTheWholePathNames) {
  EXPECT_TRUE(is_named({"x", "./a/b"}, "a/b"));
  EXPECT_FALSE(is_named({"**", "a/*"}, "a/b"));
}

TEST(WorkspaceNames, WhatMakesTheHostRunSomethingIsProtected) {
  for (const char* path :
       {".git/hooks/pre-commit", ".git/config", "sub/.git/modules/x/config", ".envrc",
        "home/.bashrc", ".vscode/settings.json", ".claude/settings.json", ".mcp.json"})
    EXPECT_FALSE(reason_to_protect({}, path, FileType::file).empty()) << path;
  EXPECT_FALSE(reason_to_protect({}, "sub/.git", FileType::link).empty());
  EXPECT_FALSE(reason_to_protect("/x/.git", "hooks/x", FileType::file).empty());
}

/// Twin: files there, and links elsewhere.
TEST(WorkspaceNames, ALinkInARepositoryIsProtected) {
  for (const char* path : {".git/logs/HEAD", ".git/COMMIT_EDITMSG", "sub/.GIT/refs/heads/x",
                           ".git/worktrees/x/logs/HEAD"}) {
    EXPECT_FALSE(reason_to_protect("/x", path, FileType::link).empty()) << path;
    EXPECT_TRUE(reason_to_protect("/x", path, FileType::file).empty()) << path;
  }
  EXPECT_FALSE(reason_to_protect("/x/.git", "HEAD", FileType::link).empty());
  EXPECT_TRUE(reason_to_protect("/x", "logs/HEAD", FileType::link).empty());
}

TEST(WorkspaceNames, OtherNamesAreFree) {
  for (const char* path :
       {".git/HEAD", ".git/objects/ab/cd", "config", "hooks/x", "src/bashrc", "a.envrc"})
    EXPECT_TRUE(reason_to_protect("/x", path, FileType::file).empty()) << path;
  EXPECT_TRUE(reason_to_protect({}, ".git", FileType::directory).empty());
}

TEST(WorkspaceStored, AChangeWhoseContentWasNotKeptIsAnError) {
  Copy copy{.directory = "/srv/project"};
  copy.stored = std::make_unique<Stored>();
  const auto content = open_content(copy, {.path = "lost"});
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, "no-content");
}

}  // namespace
}  // namespace sbx::workspace
