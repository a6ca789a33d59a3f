#include "policy/config.hpp"

#include <gtest/gtest.h>

namespace sbx::policy {
namespace {

TEST(PolicyConfig, NamesTheDefaultPolicy) {
  EXPECT_EQ(parse_config("policy = \"strict\"", "config.toml").value(), "strict");
  EXPECT_EQ(parse_config("# nothing", "config.toml").value(), "");
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
