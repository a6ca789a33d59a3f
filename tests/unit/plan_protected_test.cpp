#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/files/protected.hpp"

namespace sbx::plan {
namespace {

bool is_protected(std::string_view directory, std::string_view name) {
  return !reason_to_protect(directory, name).empty();
}

TEST(Protected, OfDotGitEverythingButData) {
  for (const char* name : {"hooks", "config", "config.worktree", "commondir", "modules", "branches",
                           "rebase-merge", "sequencer", "gitdir", "what-comes-next"})
    EXPECT_TRUE(is_protected("/x/.git", name)) << name;
  for (const char* name :
       {"objects", "refs", "packed-refs", "logs", "index", "sharedindex.ab", "HEAD", "ORIG_HEAD",
        "CHERRY_PICK_HEAD", "MERGE_MSG", "AUTO_MERGE", "COMMIT_EDITMSG", "shallow", "info"})
    EXPECT_FALSE(is_protected("/x/.git", name)) << name;
  EXPECT_FALSE(is_protected("src", "hooks"));
  EXPECT_FALSE(is_protected("/x/.git/info", "exclude"));
  EXPECT_TRUE(is_protected("/x/.git/info", "attributes"));
  EXPECT_FALSE(is_protected("/x/info", "attributes"));
}

TEST(Protected, OfAWorktreeTheSame) {
  EXPECT_FALSE(is_protected("/x/.git", "worktrees"));
  EXPECT_FALSE(is_protected("/x/.git/worktrees", "topic"));
  EXPECT_FALSE(is_protected("/x/.git/worktrees/topic", "index"));
  EXPECT_TRUE(is_protected("/x/.git/worktrees/topic", "commondir"));
  EXPECT_FALSE(is_protected("/x/worktrees/topic", "commondir"));
}

TEST(Protected, OfSubmodulesWhatIsNoDataWhateverTheirNames) {
  const auto is_held = [](std::vector<std::string> above, std::string_view name,
                          bool is_directory) {
    return !reason_in_modules(above, name, is_directory).empty();
  };
  EXPECT_TRUE(holds_submodules("/x/.git", "Modules"));
  EXPECT_TRUE(holds_submodules("/x/.git/worktrees/w", "modules"));
  EXPECT_FALSE(holds_submodules("/x", "modules"));
  EXPECT_FALSE(holds_submodules("/x/worktrees/w", "modules"));
  for (const char* name : {"hooks", "Config", "config.worktree", "commondir", "gitdir"})
    for (const auto& above : {std::vector<std::string>{},
                              {"sub"},
                              {"libs", "sub"},
                              {"x", "objects"},
                              {"x", "refs", "heads"},
                              {"sub", "modules", "inner"}})
      EXPECT_TRUE(is_held(above, name, false)) << name;
  EXPECT_TRUE(is_held({"sub"}, "what-comes-next", false));
  EXPECT_TRUE(is_held({"objects"}, "what-comes-next", false));
  EXPECT_TRUE(is_held({"sub", "info"}, "attributes", false));
  for (const char* name : {"HEAD", "index", "packed-refs", "ORIG_HEAD"})
    EXPECT_FALSE(is_held({"libs", "sub"}, name, false)) << name;
  EXPECT_FALSE(is_held({"sub", "objects", "ab"}, "0123", false));
  EXPECT_FALSE(is_held({"sub", "refs", "heads"}, "config-two", false));
  EXPECT_FALSE(is_held({"sub", "info"}, "exclude", false));
  EXPECT_FALSE(is_held({}, "sub", true));
}

TEST(Protected, NamesStartFilesAnywhere) {
  for (const char* name : {".envrc", ".bashrc", ".vscode", "CLAUDE.md", "x.code-workspace",
                           ".dir-locals-2.el", ".pnpmfile.cjs"})
    EXPECT_TRUE(is_protected("project", name)) << name;
  for (const char* name : {"main.py", "claude", ".bashrc.txt", "code-workspace", "config", "c"})
    EXPECT_FALSE(is_protected("project", name)) << name;
  EXPECT_TRUE(is_protected("/p/.cargo", "config.toml"));
  EXPECT_FALSE(is_protected("/p", "config.toml"));
  EXPECT_TRUE(is_protected("/p/.config", "git"));
  EXPECT_FALSE(is_protected("/p", "git"));
}

TEST(Protected, OfMiseEveryPlaceOfItsSettings) {
  EXPECT_TRUE(is_protected("/p", ".mise"));
  for (const char* name : {"config.toml", "config.local.toml", "config.dev.toml", "conf.d"}) {
    EXPECT_TRUE(is_protected("/p/mise", name)) << name;
    EXPECT_TRUE(is_protected("/p/.config/mise", name)) << name;
    EXPECT_FALSE(is_protected("/p/settings", name)) << name;
  }
  EXPECT_FALSE(is_protected("/p", "mise"));
  EXPECT_FALSE(is_protected("/p/mise", "config.rs"));
}

TEST(Protected, TheCaseOfLettersDoesNotCount) {
  EXPECT_TRUE(is_protected("/x/.GIT", "Hooks"));
  EXPECT_TRUE(is_protected("/x/.git", "hoo\u212as"));
  EXPECT_TRUE(is_protected("/x/.gi\u200ct", "hooks"));
  EXPECT_TRUE(is_protected("/x", ".ba\u017fhrc"));
  EXPECT_TRUE(is_protected("/x", "claude.MD"));
  EXPECT_FALSE(is_protected("/x/.git", "Head"));
  EXPECT_TRUE(is_dot_git(".Git"));
  EXPECT_FALSE(is_dot_git("git"));
}

TEST(Protected, CharactersThatTakeNoRoomDoNotCount) {
  for (const char* ignored : {"\u00ad", "\u034f", "\u061c", "\u1160", "\u17b4", "\u180b", "\u180e",
                              "\u200b", "\u202e", "\u206f", "\u3164", "\ufe0f", "\ufeff", "\uffa0",
                              "\ufff8", "\U0001bca0", "\U0001d17a", "\U000e0001", "\U000e0fff"}) {
    const std::string text(ignored);
    EXPECT_TRUE(is_protected("/x", ".en" + text + "vrc")) << ignored;
    EXPECT_TRUE(is_protected("/x", text + ".envrc")) << ignored;
    EXPECT_TRUE(is_protected("/x", "x.code-workspace" + text)) << ignored;
    EXPECT_TRUE(is_protected("/x/.gi" + text + "t", "hooks")) << ignored;
  }
  for (const char* other : {"\u00e9", "\u0350", "\u180a", "\u2010", "\u3165", "\U0001f600"})
    EXPECT_FALSE(is_protected("/x", std::string(".en") + other + "vrc")) << other;
}

TEST(Protected, DotsAtTheEndDoNotCount) {
  EXPECT_TRUE(is_protected("/x", ".envrc."));
  EXPECT_TRUE(is_protected("/x", "x.code-workspace.."));
  EXPECT_TRUE(is_protected("/x/.git.", "config"));
  EXPECT_TRUE(is_protected("/x/.git", "hooks."));
  EXPECT_FALSE(is_protected("/x/.git", "HEAD."));
  EXPECT_FALSE(is_protected("/x", "..."));
  EXPECT_FALSE(is_protected("/x", "main.py."));
}

TEST(WithoutCredentials, TakesPasswordsOutOfUrls) {
  EXPECT_EQ(without_credentials("[remote \"o\"]\n\turl = https://me:secret@example.org/x.git\n"),
            "[remote \"o\"]\n\turl = https://example.org/x.git\n");
  EXPECT_EQ(without_credentials("\turl = https://token@example.org/x.git"),
            "\turl = https://example.org/x.git");
  EXPECT_EQ(without_credentials("[url \"https://a:b@h/\"]\n"), "[url \"https://h/\"]\n");
}

TEST(WithoutCredentials, TakesHeadersAndTokensOut) {
  const auto clean =
      without_credentials("[http]\n\textraHeader = AUTHORIZATION: basic abc\n\tproxy = p\n");
  ASSERT_TRUE(clean);
  EXPECT_EQ(clean->find("abc"), std::string::npos);
  EXPECT_NE(clean->find("proxy = p"), std::string::npos);
}

TEST(WithoutCredentials, TakesContinuedLinesOutWhole) {
  const auto clean =
      without_credentials("[http]\n\textraHeader = AUTHORIZATION: \\\nbasic abc\n\tproxy = p\n");
  ASSERT_TRUE(clean);
  EXPECT_EQ(clean->find("abc"), std::string::npos);
  EXPECT_NE(clean->find("proxy = p"), std::string::npos);
  EXPECT_FALSE(without_credentials("[core]\n\teditor = a \\\n b\n"));
}

TEST(WithoutCredentials, SaysNothingWhenThereIsNone) {
  EXPECT_FALSE(without_credentials("[core]\n\tbare = false\n"));
  EXPECT_FALSE(without_credentials("[remote \"o\"]\n\turl = ssh://git@example.org/x.git\n"));
  EXPECT_FALSE(without_credentials("[user]\n\temail = me@example.org\n"));
  EXPECT_FALSE(without_credentials(""));
}

}  // namespace
}  // namespace sbx::plan
