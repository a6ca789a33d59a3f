#include <gtest/gtest.h>

#include "plan/files/protected.hpp"

namespace sbx::plan {
namespace {

TEST(Protected, NamesWhatGitRunsOnlyInsideDotGit) {
  EXPECT_TRUE(is_protected(".git", "hooks"));
  EXPECT_TRUE(is_protected(".git", "config"));
  EXPECT_TRUE(is_protected(".git", "modules"));
  EXPECT_FALSE(is_protected(".git", "objects"));
  EXPECT_FALSE(is_protected("src", "hooks"));
}

TEST(Protected, NamesStartFilesAnywhere) {
  EXPECT_TRUE(is_protected("project", ".envrc"));
  EXPECT_TRUE(is_protected("project", ".bashrc"));
  EXPECT_TRUE(is_protected("project", ".vscode"));
  EXPECT_FALSE(is_protected("project", "main.py"));
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
