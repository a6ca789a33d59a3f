#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "mcp/message.hpp"

namespace sbx::mcp {
namespace {

constexpr const char* kModern =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
    R"("io.modelcontextprotocol/clientCapabilities":{}})";

std::string call(const std::string& id, const std::string& params) {
  return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"tools/list","params":)" + params + "}";
}

TEST(McpMessage, IsOfTheEraThatItsRequestNames) {
  const auto legacy = std::get<Request>(read_message(call("1", R"({"a":2})")));
  EXPECT_EQ(legacy.era, Era::legacy);
  EXPECT_EQ(legacy.params, Json::parse(R"({"a":2})"));
  const auto modern =
      std::get<Request>(read_message(call("\"x\"", std::string("{") + kModern + "}")));
  EXPECT_EQ(modern.era, Era::modern);
  EXPECT_EQ(modern.id, "x");
}

TEST(McpMessage, OfAnotherVersionIsToldWhichOnesAreSpoken) {
  const auto problem = std::get<Problem>(read_message(
      call("7", R"({"_meta":{"io.modelcontextprotocol/protocolVersion":"2031-01-01"}})")));
  EXPECT_EQ(problem.code, Code::other_version);
  EXPECT_EQ(Json::parse(problem_text(problem)),
            Json::parse(R"({"jsonrpc":"2.0","id":7,"error":{"code":-32022,)"
                        R"("message":"this server does not speak that version of the protocol",)"
                        R"("data":{"supported":["2026-07-28"],"requested":"2031-01-01"}}})"));
}

TEST(McpMessage, ThatIsNoneHasACodeOfJsonRpc) {
  const auto code_of = [](const std::string& line) {
    return std::get<Problem>(read_message(line)).code;
  };
  EXPECT_EQ(code_of("{"), Code::parse_error);
  EXPECT_EQ(code_of("\"\xff\""), Code::parse_error);
  EXPECT_EQ(code_of("[]"), Code::invalid_request);
  EXPECT_EQ(code_of("{}"), Code::invalid_request);
  EXPECT_EQ(code_of(R"({"jsonrpc":"2.0","id":null,"method":"ping"})"), Code::invalid_request);
  EXPECT_EQ(code_of(R"({"jsonrpc":"2.0","id":true,"method":"ping"})"), Code::invalid_request);
  EXPECT_EQ(code_of(R"({"jsonrpc":"1.0","id":1,"method":"ping"})"), Code::invalid_request);
  EXPECT_EQ(code_of(call("1", "[]")), Code::invalid_params);
  EXPECT_EQ(code_of(R"({"jsonrpc":"2.0","id":1,"method":"server/discover"})"),
            Code::invalid_params);
}

TEST(McpMessage, ThatWantsNoAnswerGetsNone) {
  for (const char* const line :
       {"", " \t\r", R"({"jsonrpc":"2.0","id":1,"result":{}})",
        R"({"jsonrpc":"2.0","id":1,"error":{}})", R"({"jsonrpc":"2.0","method":"x","params":[]})",
        R"({"jsonrpc":"1.0","method":"x"})"})
    EXPECT_TRUE(std::holds_alternative<Nothing>(read_message(line))) << line;
  const auto notification =
      std::get<Request>(read_message(R"({"jsonrpc":"2.0","method":"notifications/cancelled"})"));
  EXPECT_TRUE(notification.id.is_null());
}

TEST(McpMessage, NestedDeeperThanTheLimitIsRefused) {
  const auto nested = [](int depth) {
    std::string text = "{\"a\":";
    for (int i = 1; i < depth; ++i) text += "[";
    for (int i = 1; i < depth; ++i) text += "]";
    return text + "}";
  };
  EXPECT_EQ(std::get<Problem>(read_message(nested(64))).code, Code::invalid_request);
  EXPECT_EQ(std::get<Problem>(read_message(nested(65))).code, Code::parse_error);
}

TEST(McpMessage, OfInitializeIsAnsweredWithAVersionThatIsSpoken) {
  EXPECT_EQ(legacy_version({{"protocolVersion", "2025-03-26"}}), "2025-03-26");
  EXPECT_EQ(legacy_version({{"protocolVersion", "1999-01-01"}}), kLatestLegacy);
  EXPECT_EQ(legacy_version({{"protocolVersion", kModernVersion}}), kLatestLegacy);
  EXPECT_EQ(legacy_version(Json::object()), kLatestLegacy);
}

TEST(McpMessage, AnswersOfTheModernEraSayThatTheyAreComplete) {
  EXPECT_EQ(answer_text(1, Era::legacy, {{"a", 1}}),
            R"({"jsonrpc":"2.0","id":1,"result":{"a":1}})");
  const Json modern = Json::parse(answer_text("x", Era::modern, {{"a", 1}}));
  EXPECT_EQ(modern["result"]["resultType"], "complete");
  EXPECT_EQ(modern["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "sbx");
}

}  // namespace
}  // namespace sbx::mcp
