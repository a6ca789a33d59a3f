#include <gtest/gtest.h>

#include <string>

#include "cli/mcp_install/json_edit.hpp"

namespace sbx::cli::mcp_install {
namespace {

JsonText text_of(const std::string& text) {
  auto read = JsonText::read(text);
  EXPECT_TRUE(read) << text;
  return read ? *read : *JsonText::read("");
}
std::string after_set(const std::string& text, const Names& names, const Json& value) {
  JsonText json = text_of(text);
  const Status done = json.set(names, value);
  return done ? json.text() : "refused: " + done.error().message;
}
std::string after_word(const std::string& text, const Names& list, const std::string& word) {
  JsonText json = text_of(text);
  const Status done = json.add_word(list, word);
  return done ? json.text() : "refused: " + done.error().message;
}
std::string mistake_in(const std::string& text) {
  const auto read = JsonText::read(text);
  return read ? "" : read.error().message;
}

TEST(McpInstallJson, AddsAMemberAndKeepsEveryOtherByte) {
  // A number beyond 64 bits, one with a form of its own, escapes and an order: none is written
  // anew.
  const std::string before =
      "{\n\t\"n\": 123456789012345678901234567890,\n\t\"f\": 1.50e+3,\n\t\"s\": \"\\u00e9\\/\"\n}";
  EXPECT_EQ(after_set(before, {"m"}, {{"a", 1}}),
            "{\n\t\"n\": 123456789012345678901234567890,\n\t\"f\": 1.50e+3,\n\t\"s\": "
            "\"\\u00e9\\/\",\n\t\"m\": {\n\t\t\"a\": 1\n\t}\n}");
}

TEST(McpInstallJson, MakesObjectsThatAreMissing) {
  EXPECT_EQ(after_set("", {"a", "b"}, true), "{\n  \"a\": {\n    \"b\": true\n  }\n}\n");
  EXPECT_EQ(after_set("{}", {"a"}, 1), "{\n  \"a\": 1\n}");
  EXPECT_EQ(after_set(" \n", {"a"}, 1), "{\n  \"a\": 1\n}\n");
  EXPECT_EQ(after_set("{\n    \"a\": {}\n}\n", {"a", "b"}, 1),
            "{\n    \"a\": {\n        \"b\": 1\n    }\n}\n");
  EXPECT_EQ(after_set(R"({"a":{"x":1},"c":2})", {"a", "b"}, 1), R"({"a":{"x":1,"b": 1},"c":2})");
}

TEST(McpInstallJson, ReplacesAValueAndLeavesTheSameOneAlone) {
  EXPECT_EQ(after_set("{ \"a\": [1, 2], \"b\" : 3 }", {"a"}, "x"), "{ \"a\": \"x\", \"b\" : 3 }");
  const std::string same = "{\"a\":   {\"b\": [1,2]}}";
  EXPECT_EQ(after_set(same, {"a"}, Json::parse(R"({"b": [1, 2]})")), same);
}

TEST(McpInstallJson, TakesStringsForWhatTheyAre) {
  const std::string hostile = "{\"a{[\\\"\": \"}],{\\\\\", \"b\": [\"]\", {\"c\": \"}\"}]}";
  EXPECT_EQ(after_set(hostile, {"b"}, 1), "{\"a{[\\\"\": \"}],{\\\\\", \"b\": 1}");
  EXPECT_EQ(after_set("{\"\\u0061\": 1}", {"a"}, 2), "{\"\\u0061\": 2}");
}

TEST(McpInstallJson, AddsAndDropsWordsOfALaterList) {
  EXPECT_EQ(after_word("{}", {"p", "deny"}, "Bash"),
            "{\n  \"p\": {\n    \"deny\": [\n      \"Bash\"\n    ]\n  }\n}");
  EXPECT_EQ(after_word(R"({"deny": ["A", "B"]})", {"deny"}, "C"), R"({"deny": ["A", "B", "C"]})");
  EXPECT_EQ(after_word(R"({"deny": ["A","B"]})", {"deny"}, "A"), R"({"deny": ["A","B"]})");
  JsonText json = text_of(R"({"deny": ["A", "B", "A", "C"]})");
  ASSERT_TRUE(json.drop_word({"deny"}, "A"));
  EXPECT_EQ(json.text(), R"({"deny": ["B", "C"]})");
  ASSERT_TRUE(json.drop_word({"deny"}, "C"));
  ASSERT_TRUE(json.drop_word({"deny"}, "B"));
  EXPECT_EQ(json.text(), R"({"deny": []})");
  EXPECT_TRUE(json.drop_word({"nowhere"}, "B"));
}

TEST(McpInstallJson, DropsAMemberWhereverItStands) {
  const auto without = [](const std::string& text, const Names& names) {
    JsonText json = text_of(text);
    EXPECT_TRUE(json.drop(names));
    return json.text();
  };
  const std::string three = "{\n  \"a\": 1,\n  \"b\": {\"c\": 2},\n  \"d\": 3\n}\n";
  EXPECT_EQ(without(three, {"a"}), "{\n  \"b\": {\"c\": 2},\n  \"d\": 3\n}\n");
  EXPECT_EQ(without(three, {"d"}), "{\n  \"a\": 1,\n  \"b\": {\"c\": 2}\n}\n");
  EXPECT_EQ(without(three, {"b", "c"}), "{\n  \"a\": 1,\n  \"b\": {},\n  \"d\": 3\n}\n");
  EXPECT_EQ(without(three, {"x", "y"}), three);
}

TEST(McpInstallJson, WhatWasAddedAndDroppedLeavesTheFileAsItWas) {
  for (const std::string before :
       {"{\"a\": 1}", "{\n  \"a\": {\n    \"x\": [1]\n  }\n}\n", "{\r\n\t\"a\": null\r\n}\r\n"}) {
    JsonText json = text_of(before);
    ASSERT_TRUE(json.set({"m"}, Json::parse(R"({"k": ["v", "w"]})")));
    EXPECT_NE(json.text(), before);
    ASSERT_TRUE(json.drop({"m"}));
    EXPECT_EQ(json.text(), before);
  }
}

TEST(McpInstallJson, RefusesWhatItCannotKeep) {
  EXPECT_EQ(mistake_in("{\"a\": 1} // mine"),
            "it has comments, is too deep or has too many values");
  EXPECT_EQ(mistake_in("/* mine */ {}"), "it has comments, is too deep or has too many values");
  EXPECT_EQ(mistake_in("{\"a\": 1,}"), "it is not JSON");
  EXPECT_EQ(mistake_in("\xff"), "it is not JSON");
  EXPECT_EQ(mistake_in(std::string("{\0}", 3)), "it is not JSON");
  EXPECT_EQ(mistake_in("\xef\xbb\xbf{}"), "it is not one JSON object");
  EXPECT_EQ(mistake_in("[1]"), "it is not one JSON object");
  EXPECT_EQ(mistake_in("null"), "it is not one JSON object");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  EXPECT_EQ(mistake_in(deep), "it is not JSON");
  std::string nested = deep + "1";
  for (int i = 0; i < 100'000; ++i) nested += "}";
  EXPECT_EQ(mistake_in(nested), "it has comments, is too deep or has too many values");
}

TEST(McpInstallJson, RefusesAWayThroughAnotherKindOrATwin) {
  EXPECT_EQ(after_set(R"({"a": [1]})", {"a", "b"}, 1), "refused: \"a\" is not an object");
  EXPECT_EQ(after_set(R"({"a": "{}"})", {"a", "b"}, 1), "refused: \"a\" is not an object");
  EXPECT_EQ(after_set(R"({"a": {}, "a": {}})", {"a", "b"}, 1), "refused: \"a\" is there twice");
  EXPECT_EQ(after_word(R"({"deny": "Bash"})", {"deny"}, "Bash"), "refused: \"deny\" is not a list");
  // Twice elsewhere is somebody else's.
  EXPECT_EQ(after_set(R"({"x": 1, "x": 2, "a": 1})", {"a"}, 3), R"({"x": 1, "x": 2, "a": 3})");
}

TEST(McpInstallJson, OfTwinsTheLastIsRead) {
  const JsonText json = text_of(R"({"a": 1, "a": 2})");
  EXPECT_EQ(*json.find({"a"}), 2);
  EXPECT_EQ(json.find({"a", "b"}), nullptr);
}

}  // namespace
}  // namespace sbx::cli::mcp_install
