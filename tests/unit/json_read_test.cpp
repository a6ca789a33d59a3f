#include <gtest/gtest.h>

#include <string>

#include "base/json_read.hpp"

namespace sbx {
namespace {

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(JsonOfOthers, IsReadAsItIs) {
  const std::string text =
      R"({"b":[true,null,{"c":-2.5},"\u00e9"],"a":18446744073709551615,"d":[]})";
  EXPECT_EQ(read_json(text).dump(),
            R"({"b":[true,null,{"c":-2.5},"é"],"a":18446744073709551615,"d":[]})");
  std::string cbor;
  Json::to_cbor(Json::parse(text), cbor);
  EXPECT_EQ(read_cbor(cbor), Json::parse(text));
}

TEST(JsonOfOthers, HasTheFirstOfTwoMembersWithOneName) {
  EXPECT_EQ(*read_json(R"({"a":1,"a":2})").find("a"), 1);
}

TEST(JsonOfOthers, IsDiscardedWhereItIsNone) {
  for (const char* const text : {"", "{", "{}x", "[1,]", "1e999", "\"\xff\"", "nul"})
    EXPECT_TRUE(read_json(text).is_discarded()) << text;
}

TEST(JsonOfOthers, IsDiscardedBeyondTheLimits) {
  const JsonLimits limits{.depth = 4, .values = 10};
  EXPECT_FALSE(read_json("[[[[]]]]", limits).is_discarded());
  EXPECT_TRUE(read_json("[[[[[]]]]]", limits).is_discarded());
  EXPECT_FALSE(read_json("[1,2,3,4,5,6,7,8,9]", limits).is_discarded());
  EXPECT_TRUE(read_json("[1,2,3,4,5,6,7,8,9,10]", limits).is_discarded());
  EXPECT_TRUE(read_json(R"({"a":1,"b":2,"c":3,"d":4,"e":5})", limits).is_discarded());
}

/// The library's reader of CBOR recurses for each level, and reserves room for each size that is
/// announced.
TEST(CborOfOthers, EndsAtTheLimitsBeforeTheStackDoes) {
  EXPECT_TRUE(read_cbor(std::string(2'000'000, '\x81')).is_discarded());
  EXPECT_TRUE(read_cbor(repeated("\xa1\x61x", 1'000'000)).is_discarded());
  for (const char head : {'\x9b', '\xbb', '\x7b', '\x5b'})
    EXPECT_TRUE(read_cbor(std::string(1, head) + "\x7f" + std::string(7, '\xff')).is_discarded());
}

/// Each of these took the library's own readers more than ten minutes, and the test would end by
/// its time limit.
TEST(JsonOfOthers, TakesTimeInProportionToItsSize) {
  const JsonLimits limits{.depth = 4, .values = 5'000'000};
  EXPECT_EQ(read_json("[" + repeated("{},", 2'000'000) + "0]", limits).size(), 2'000'001U);
  std::string names = "{";
  for (int i = 0; i < 1'000'000; ++i) names += "\"" + std::to_string(i) + "\":0,";
  names.back() = '}';
  const Json many = read_json(names, limits);
  EXPECT_EQ(many.size(), 1'000'000U);
  std::string cbor;
  Json::to_cbor(many, cbor);
  EXPECT_EQ(read_cbor(cbor, limits).size(), 1'000'000U);
}

TEST(JsonDump, EscapesWhatATerminalObeys) {
  const std::string text =
      "a\x7f\u0080\u009f\u061c\u200e\u2028\u202e\u2066\u2069z\u00a0\u2070\u00e9";
  const std::string dumped = dump(Json(text));
  EXPECT_EQ(
      dumped,
      "\"a\\u007f\\u0080\\u009f\\u061c\\u200e\\u2028\\u202e\\u2066\\u2069z\u00a0\u2070\u00e9\"\n");
  EXPECT_EQ(read_json(dumped), Json(text));
  EXPECT_EQ(read_json(pretty(Json{{"k\u009b", text}})), (Json{{"k\u009b", text}}));
}

}  // namespace
}  // namespace sbx
