#include "mcp/message.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/json_read.hpp"
#include "session/json.hpp"

namespace sbx::mcp {
namespace {

using session::part;

constexpr JsonLimits kLimits{.depth = 64, .values = 1'000'000};
constexpr std::string_view kMeta = "io.modelcontextprotocol/";

Json meta_of(const Json& params, std::string_view name) {
  const Json& meta = part(params, "_meta");
  if (!meta.is_object()) return nullptr;
  const auto found = meta.find(std::string(kMeta) + std::string(name));
  return found == meta.end() ? Json() : *found;
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json server_info() {
  return {{"name", "sbx"}, {"version", SBX_VERSION}};
}

/// Sets the era; what is wrong with it.
Problem check_era(Request& request) {
  const Json version = meta_of(request.params, "protocolVersion");
  const bool discovers = request.method == "server/discover";
  if (version.is_null() && !discovers) return {};
  const auto wrong = [&](Code code, std::string message, Json data = {}) {
    return Problem{request.id, code, std::move(message), std::move(data)};
  };
  if (!version.is_string())
    return wrong(Code::invalid_params,
                 "params._meta needs io.modelcontextprotocol/protocolVersion");
  if (version != kModernVersion)
    return wrong(Code::other_version, "this server does not speak that version of the protocol",
                 {{"supported", {kModernVersion}}, {"requested", version}});
  if (!meta_of(request.params, "clientCapabilities").is_object())
    return wrong(Code::invalid_params,
                 "params._meta needs io.modelcontextprotocol/clientCapabilities");
  request.era = Era::modern;
  return {};
}

}  // namespace

std::variant<Request, Problem, Nothing> read_message(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == line.npos) return Nothing{};
  Json body = read_json(line, kLimits);
  if (body.is_discarded())
    return Problem{nullptr, Code::parse_error, "the line is not JSON of bounded depth in UTF-8"};
  if (!body.is_object())
    return Problem{nullptr, Code::invalid_request,
                   "a message is one JSON object; batches are not taken"};
  const Json& method = part(body, "method");
  const bool has_id = body.contains("id");
  const Json& id = part(body, "id");
  const bool is_answer =
      !body.contains("method") && (body.contains("result") || body.contains("error"));
  if (is_answer) return Nothing{};
  const bool is_sound_id = id.is_string() || id.is_number();
  if (has_id && !is_sound_id)
    return Problem{nullptr, Code::invalid_request, "the id is neither a string nor a number"};
  if (part(body, "jsonrpc") != "2.0" || !method.is_string()) {
    if (!has_id && method.is_string()) return Nothing{};
    return Problem{id, Code::invalid_request, "the message is not a request of JSON-RPC 2.0"};
  }
  Request request{.id = id, .method = method.get<std::string>(), .bytes = line.size()};
  if (auto params = body.find("params"); params != body.end()) request.params = std::move(*params);
  if (!request.params.is_object()) {
    if (!has_id) return Nothing{};
    return Problem{id, Code::invalid_params, "params is not an object"};
  }
  if (!has_id) return request;
  Problem problem = check_era(request);
  if (problem.code != Code{}) return problem;
  return request;
}

std::string legacy_version(const Json& params) {
  constexpr std::array kKnown{"2024-11-05", "2025-03-26", "2025-06-18", kLatestLegacy};
  const Json& asked = part(params, "protocolVersion");
  const auto is_asked = [&](const char* each) { return asked == each; };
  return std::ranges::any_of(kKnown, is_asked) ? asked.get<std::string>() : kLatestLegacy;
}

std::string answer_text(const Json& id, Era era, Json result) {
  if (era == Era::modern) {
    result["resultType"] = "complete";
    result["_meta"][std::string(kMeta) + "serverInfo"] = server_info();
  }
  return text_of({{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}});
}

std::string problem_text(const Problem& problem) {
  Json error{{"code", static_cast<int>(problem.code)}, {"message", problem.message}};
  if (!problem.data.is_null()) error["data"] = problem.data;
  return text_of({{"jsonrpc", "2.0"}, {"id", problem.id}, {"error", std::move(error)}});
}

std::string notification_text(const char* method, Json params) {
  return text_of({{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}});
}

}  // namespace sbx::mcp
