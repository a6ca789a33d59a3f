#include "policy/config.hpp"

#include <gtest/gtest.h>

namespace sbx::policy {
namespace {

TEST(PolicyConfig, NamesTheDefaultPolicy) {
  EXPECT_EQ(parse_config("policy = \"strict\"", "config.toml").value().policy, "strict");
  EXPECT_EQ(parse_config("# nothing", "config.toml").value().policy, "");
}

TEST(PolicyConfig, KeepsTheLastRecordOnlyWhenAsked) {
  EXPECT_FALSE(parse_config("policy = \"strict\"", "config.toml").value().keep_record);
  EXPECT_FALSE(parse_config("record = \"drop\"", "config.toml").value().keep_record);
  EXPECT_TRUE(parse_config("record = \"keep\"", "config.toml").value().keep_record);
  const auto word = parse_config("record = \"always\"", "config.toml");
  ASSERT_FALSE(word);
  EXPECT_EQ(word.error().code, "unknown-word");
}

TEST(PolicyConfig, NamesTheIsolation) {
  EXPECT_FALSE(parse_config("policy = \"strict\"", "config.toml").value().isolation);
  const auto config = parse_config("\nisolation = \"auto\"", "config.toml").value();
  ASSERT_TRUE(config.isolation);
  EXPECT_EQ(config.isolation->value, Isolation::automatic);
  EXPECT_EQ(config.isolation->origin.text(), "config.toml:2");
  const auto word = parse_config("isolation = \"none\"", "config.toml");
  ASSERT_FALSE(word);
  EXPECT_EQ(word.error().code, "unknown-word");
  EXPECT_EQ(word.error().message, "isolation is \"namespaces\", \"auto\" or \"landlock\"");
  EXPECT_EQ(parse_config("isolation = 1", "config.toml").error().code, "wrong-type");
}

TEST(PolicyConfig, MistakesHaveTheirPlace) {
  const auto unknown = parse_config("\npolcy = \"strict\"", "config.toml");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, "unknown-key");
  EXPECT_EQ(unknown.error().origin->text(), "config.toml:2");
  const auto type = parse_config("policy = 5", "config.toml");
  ASSERT_FALSE(type);
  EXPECT_EQ(type.error().code, "wrong-type");
  EXPECT_EQ(type.error().origin->column, 10);
  const auto syntax = parse_config("policy = strict", "config.toml");
  ASSERT_FALSE(syntax);
  EXPECT_EQ(syntax.error().code, "toml-syntax");
  EXPECT_FALSE(syntax.error().hint.empty());
}

}  // namespace
}  // namespace sbx::policy
