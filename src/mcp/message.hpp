#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "base/json.hpp"

/// Messages of the Model Context Protocol, which are JSON-RPC 2.0. A request says by itself which
/// era it is of.
namespace sbx::mcp {

enum class Era : std::uint8_t {
  legacy,  ///< up to 2025-11-25: initialize, then a connection with state
  modern,  ///< 2026-07-28: each request stands for itself
};
inline constexpr const char* kModernVersion = "2026-07-28";
inline constexpr const char* kLatestLegacy = "2025-11-25";

/// Error codes of JSON-RPC 2.0, and of MCP.
enum class Code : int {
  parse_error = -32700,
  invalid_request = -32600,
  no_such_method = -32601,
  invalid_params = -32602,
  internal_error = -32603,
  other_version = -32022,
};

struct Request {
  Json id;  ///< null: a notification
  std::string method;
  Json params = Json::object();
  Era era = Era::legacy;
  std::size_t bytes = 0;  ///< of its line
};
/// What is wrong with a line that can't be a request.
struct Problem {
  Json id;
  Code code{};
  std::string message;
  Json data{};
};
struct Nothing {};  ///< an answer, an empty line

[[nodiscard]] std::variant<Request, Problem, Nothing> read_message(std::string_view line);

/// The version that an answer to `initialize` has.
[[nodiscard]] std::string legacy_version(const Json& params);

[[nodiscard]] std::string answer_text(const Json& id, Era era, Json result);
[[nodiscard]] std::string problem_text(const Problem& problem);
[[nodiscard]] std::string notification_text(const char* method, Json params);

}  // namespace sbx::mcp
