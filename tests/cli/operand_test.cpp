#include <gtest/gtest.h>

#include "cli/operand.hpp"
#include "policy/config.hpp"
#include "run/variables.hpp"

namespace sbx::cli {
namespace {

TEST(PathOperand, TheColonDividesAndABackslashKeepsIt) {
  const auto plain = split_path_operand("data/in.csv", "--read");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->source, "data/in.csv");
  EXPECT_EQ(plain->suffix, "");
  const auto both = split_path_operand("data/in.csv:/in.csv", "--read");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->source, "data/in.csv");
  EXPECT_EQ(both->suffix, "/in.csv");
  const auto kept = split_path_operand("12\\:30.log:/a\\:b", "--read");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->source, "12:30.log");
  EXPECT_EQ(kept->suffix, "/a:b");
  const auto backslash = split_path_operand("a\\b", "--read");
  ASSERT_TRUE(backslash);
  EXPECT_EQ(backslash->source, "a\\b");
}

TEST(PathOperand, AnAmbiguousColonIsAnErrorThatTellsTheSpelling) {
  for (const char* text : {"a:b", "a:/b:/c", "a:", "12:30.log"}) {
    const auto parts = split_path_operand(text, "--read");
    ASSERT_FALSE(parts) << text;
    EXPECT_EQ(parts.error().kind, ErrorKind::usage);
    EXPECT_NE(parts.error().hint.find("\\:"), std::string::npos);
  }
  EXPECT_FALSE(split_path_operand("", "--read"));
  EXPECT_FALSE(split_path_operand(":/target", "--read"));
}

TEST(WorkspaceOperand, KnowsItsModes) {
  for (const char* mode : {"overlay", "read-only", "read-write", "empty"}) {
    const auto workspace = split_workspace_operand(std::string("dir:") + mode);
    ASSERT_TRUE(workspace);
    EXPECT_EQ(workspace->directory, "dir");
    EXPECT_EQ(workspace->mode, mode);
  }
  EXPECT_EQ(split_workspace_operand(":overlay")->directory, ".");
  EXPECT_EQ(split_workspace_operand("dir")->mode, "");
  EXPECT_FALSE(split_workspace_operand("dir:rw"));
}

TEST(Variables, LinesCommentsAndEqualsSigns) {
  const auto variables = run::parse_variables("A=1\n# note\n\nB=x=y # kept\r\nC=", "f");
  ASSERT_TRUE(variables);
  EXPECT_EQ(*variables, (run::Variables{{"A", "1"}, {"B", "x=y # kept"}, {"C", ""}}));
}

TEST(Variables, ZeroBytesDivideWhereThereAreAny) {
  using namespace std::string_view_literals;
  const auto variables = run::parse_variables("A=1\n2\0B=#\0"sv, "f");
  ASSERT_TRUE(variables);
  EXPECT_EQ(*variables, (run::Variables{{"A", "1\n2"}, {"B", "#"}}));
}

TEST(Variables, AMistakeIsNamedByItsLineAndNeverShowsItsText) {
  const auto variables = run::parse_variables("A=1\nhunter2\n", "--env-file \"f\"");
  ASSERT_FALSE(variables);
  EXPECT_NE(variables.error().message.find("line 2"), std::string::npos);
  EXPECT_EQ(variables.error().text().find("hunter2"), std::string::npos);
}

TEST(Config, NamesTheDefaultPolicyAndNothingElse) {
  EXPECT_EQ(policy::parse_config("policy = \"strict\"\n", "config.toml").value().policy, "strict");
  EXPECT_EQ(policy::parse_config("", "config.toml").value().policy, "");
  const auto unknown = policy::parse_config("\npolcy = \"strict\"", "config.toml");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().origin->line, 2);
  EXPECT_FALSE(policy::parse_config("policy = 1", "config.toml"));
  EXPECT_FALSE(policy::parse_config("policy = ", "config.toml"));
}

}  // namespace
}  // namespace sbx::cli
