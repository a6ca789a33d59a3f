#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.hpp"
#include "base/json_read.hpp"
#include "base/text.hpp"

namespace sbx {
namespace {

enum class Color : std::uint8_t { red, green };
constexpr const char* name_of(Color color) {
  return color == Color::red ? "red" : color == Color::green ? "green" : "";
}

struct Inner {
  std::string path;
  std::vector<std::string> names;
  bool operator==(const Inner&) const = default;
};
SBX_FIELDS(Inner, path, names)
SBX_EXACT(Inner, path, names)

struct Outer {
  std::uint8_t small = 0;
  std::int64_t signed_number = 0;
  std::uint64_t large = 0;
  double ratio = 0;
  bool flag = false;
  Color color{};
  std::chrono::milliseconds time{};
  AtMost<std::string, 5> text;
  std::optional<int> maybe;
  IfAny<int> if_any;
  AtMost<std::vector<Inner>, 2> list;
  std::vector<std::pair<std::string, std::string>> pairs;
  Json any;
  bool operator==(const Outer&) const = default;
};
SBX_FIELDS(Outer, small, signed_number, large, ratio, flag, color, time, text, maybe, if_any, list,
           pairs, any)

/// Its fields stand in that of the struct around it.
struct Around {
  std::uint64_t number = 0;
  Flat<Inner> inner;
  AtMost<ByName<std::uint64_t, 4>, 2> by_name;
  IfAny<std::string> note;
  std::string errno_;
  bool operator==(const Around&) const = default;
};
SBX_FIELDS(Around, number, inner, by_name, note, errno_)
SBX_EXACT(Around, note, errno_)

struct Nothing {};
SBX_NO_FIELDS(Nothing)

Outer example() {
  Outer value;
  value.small = 255;
  value.signed_number = -7;
  value.large = UINT64_MAX;
  value.ratio = 0.5;
  value.flag = true;
  value.color = Color::green;
  value.time = std::chrono::milliseconds(1500);
  value.text = "four";
  value.maybe = 3;
  value.list = {Inner{.path = "a\xFF", .names = {"b", "c\xFE"}}};
  value.pairs = {{"HOME", "/x"}};
  value.any = {{"free", Json::array({1, "two"})}};
  return value;
}

std::string failure(const Json& json) {
  const auto read = read_fields<Outer>(json, {.subject = "the answer"});
  if (read) return "";
  EXPECT_EQ(read.error().code, "bad-message");
  EXPECT_EQ(read.error().kind, ErrorKind::internal);
  return read.error().message;
}

TEST(Fields, ComeBackFromAPacketAsTheyWere) {
  std::string bytes;
  Json::to_cbor(write_fields(example()), bytes);
  const auto read = read_fields<Outer>(read_cbor(bytes));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, example());
  // What is not UTF-8 is a byte string, so that any reader of CBOR can read the packet.
  EXPECT_EQ(Json::from_cbor(bytes)["list"][0]["path"], Json::binary({'a', 0xFF}));
}

TEST(Fields, ComeBackFromADocumentAsTheyWere) {
  const std::string text = dump(write_fields(example(), Form::document));
  const auto read = read_fields<Outer>(read_json(text), {.form = Form::document});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, example());
}

Around around() {
  Around value;
  value.number = 1;
  value.inner = Inner{.path = "p\xFF", .names = {"n"}};
  value.by_name.emplace_back("z", 2);
  value.by_name.emplace_back("a", 3);
  value.note = "\xFE";
  value.errno_ = "e";
  return value;
}

TEST(FieldsOfAnotherStruct, StandBesideItsOwn) {
  EXPECT_EQ(dump(write_fields(around(), Form::document)),
            "{\"number\":1,\"path\":\"p\uFFFD\",\"path_b64\":\"cP8=\",\"names\":[\"n\"],"
            "\"by_name\":{\"z\":2,\"a\":3},\"note\":\"\uFFFD\",\"note_b64\":\"/g==\","
            "\"errno\":\"e\"}\n");
  for (const Form form : {Form::packet, Form::document}) {
    const auto read = read_fields<Around>(write_fields(around(), form), {.form = form});
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, around());
  }
  const Json schema = schema_of<Around>();
  EXPECT_EQ(schema["required"], Json::array({"number", "path", "names", "by_name", "errno"}));
  EXPECT_TRUE(schema["properties"].contains("path_b64"));
  EXPECT_TRUE(schema["properties"].contains("note_b64"));
  EXPECT_EQ(schema["properties"]["by_name"]["propertyNames"]["maxLength"], 4);
}

TEST(FieldsOfAnotherStruct, AndMembersOfAnyNameHaveLimits) {
  const auto with = [](const char* name, const Json& value) {
    Json json = write_fields(around());
    json[name] = value;
    const auto read = read_fields<Around>(json);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(with("path", 1), "the message: \"path\" is not a string");
  EXPECT_EQ(with("by_name", Json::array()), "the message: \"by_name\" is not an object");
  EXPECT_EQ(with("by_name", {{"a", -1}}).substr(0, 24), "the message: \"by_name.a\"");
  EXPECT_EQ(with("by_name", {{"abcde", 1}}),
            "the message: \"by_name\" has a name of more than 4 bytes");
  EXPECT_EQ(with("by_name", {{"a", 1}, {"b", 1}, {"c", 1}}),
            "the message: \"by_name\" has more than 2 members");
  EXPECT_EQ(with("by_name", {{"four", 1}, {"b", 1}}), "");
}

TEST(Fields, StandInADocumentInTheirOrder) {
  Outer value = example();
  value.maybe.reset();
  EXPECT_EQ(dump(write_fields(value, Form::document)),
            R"({"small":255,"signed_number":-7,"large":18446744073709551615,"ratio":0.5,)"
            R"("flag":true,"color":"green","time":1500,"text":"four","maybe":null,)"
            "\"list\":[{\"path\":\"a\uFFFD\",\"path_b64\":\"Yf8=\",\"names\":[\"b\",\"c\uFFFD\"],"
            "\"names_b64\":[\"Yg==\",\"Y/4=\"]}],"
            R"("pairs":[["HOME","/x"]],"any":{"free":[1,"two"]}})"
            "\n");
}

TEST(Fields, AreNamedByTheErrorWhereOneIsWrong) {
  const Json right = write_fields(example());
  EXPECT_EQ(failure(right), "");
  const auto with = [&](const char* name, const Json& value) {
    Json json = right;
    json[name] = value;
    return failure(json);
  };
  EXPECT_EQ(failure(Json::array()), "the answer: it is not an object");
  EXPECT_EQ(with("small", 256), "the answer: \"small\" is not a whole number from 0 to 255");
  EXPECT_EQ(with("small", -1), "the answer: \"small\" is not a whole number from 0 to 255");
  EXPECT_EQ(with("small", 1.5), "the answer: \"small\" is not a whole number from 0 to 255");
  EXPECT_EQ(with("signed_number", UINT64_MAX),
            "the answer: \"signed_number\" is not a whole number from -9223372036854775808 to "
            "9223372036854775807");
  EXPECT_EQ(with("flag", 1), "the answer: \"flag\" is not true or false");
  EXPECT_EQ(with("color", "blue"), "the answer: \"color\" is none of its names");
  EXPECT_EQ(with("color", ""), "the answer: \"color\" is none of its names");
  EXPECT_EQ(with("ratio", "1"), "the answer: \"ratio\" is not a number");
  EXPECT_EQ(with("text", "sixsix"), "the answer: \"text\" has more than 5 bytes");
  EXPECT_EQ(with("text", nullptr), "the answer: \"text\" is not a string");
  EXPECT_EQ(with("maybe", "x"),
            "the answer: \"maybe\" is not a whole number from -2147483648 to 2147483647");
  EXPECT_EQ(with("pairs", {{"one"}}), "the answer: \"pairs.0\" is not a pair");
  EXPECT_EQ(with("list", Json::array({1})), "the answer: \"list.0\" is not an object");
  const Json inner = right["list"][0];
  EXPECT_EQ(with("list", {inner, inner, inner}), "the answer: \"list\" has more than 2 elements");
  Json bad = inner;
  bad["names"][1] = 7;
  EXPECT_EQ(with("list", {inner, bad}), "the answer: \"list.1.names.1\" is not a string");
  bad.erase("path");
  EXPECT_EQ(with("list", Json::array({bad})), "the answer: \"list.0.path\" is missing");
}

TEST(Fields, MayBeAbsentWhereTheReaderSaysSo) {
  Json some{{"small", 1}, {"unknown", true}};
  EXPECT_FALSE(read_fields<Outer>(some));
  const auto read = read_fields<Outer>(some, {.absent_is_default = true});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->small, 1);
  EXPECT_EQ(read->text, "");
  EXPECT_TRUE(read_fields<Nothing>(Json::object()));
  EXPECT_FALSE(read_fields<Nothing>(Json(nullptr)));
}

TEST(Fields, GiveTheSchemaOfTheirDocument) {
  const Json schema = schema_of<Outer>();
  EXPECT_EQ(schema["type"], "object");
  EXPECT_EQ(schema["required"].size(), 12U);  // all but if_any
  EXPECT_EQ(schema["properties"]["small"],
            Json({{"type", "integer"}, {"minimum", 0}, {"maximum", 255}}));
  EXPECT_EQ(schema["properties"]["large"], Json({{"type", "integer"}, {"minimum", 0}}));
  EXPECT_EQ(schema["properties"]["color"], Json({{"enum", {"red", "green"}}}));
  EXPECT_EQ(schema["properties"]["text"], Json({{"type", "string"}, {"maxLength", 5}}));
  EXPECT_EQ(schema["properties"]["maybe"]["type"], Json({"integer", "null"}));
  EXPECT_EQ(schema["properties"]["list"]["maxItems"], 2);
  const Json inner = schema["properties"]["list"]["items"]["properties"];
  EXPECT_EQ(inner["path_b64"], Json({{"type", "string"}, {"contentEncoding", "base64"}}));
  EXPECT_EQ(inner["names_b64"]["type"], "array");
}

TEST(Base64, IsReadBack) {
  for (const std::string& bytes : {std::string(), std::string("a"), std::string("ab"),
                                   std::string("abc"), std::string("\0\xFF\x80~", 4)})
    EXPECT_EQ(base64_bytes(base64(bytes)), bytes);
  EXPECT_EQ(base64_bytes("YWJj\nZGU="), "abcde");
  for (const char* const text : {"Y g=", "Yg-_", "é"})
    EXPECT_EQ(base64_bytes(text), std::nullopt) << text;
}

}  // namespace
}  // namespace sbx
