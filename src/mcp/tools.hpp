#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/facts.hpp"
#include "base/json.hpp"

namespace sbx::mcp {

enum class ToolKind : std::uint8_t {
  run_code,
  run_command,
  wait,
  read_file,
  write_file,
  changes,
  get_policy,
  apply_changes,
};

enum class ArgumentKind : std::uint8_t {
  text,
  word,  ///< a text without NUL, as each word of a command line
  path,  ///< a word of at most 4096 bytes
  paths,
  language,
  encoding,
  integer,
  boolean,
};

struct Argument {
  const char* name;
  ArgumentKind kind;
  bool is_required;
  const char* text;  ///< for the model
  std::int64_t least = 0;
  std::int64_t most = 0;  ///< 0: limits.wall_time in seconds
};

struct Tool {
  ToolKind kind;
  const char* name;
  const char* text;
  std::span<const Argument> arguments;
  bool is_read_only;
  bool is_idempotent;
  bool runs_programs;  ///< it reaches what the policy allows
  bool has_long_answer;
  bool writes = false;  ///< it changes files, and runs nothing
};

/// Its result is how something ran that a program has.
[[nodiscard]] constexpr bool gives_record(const Tool& tool) {
  return tool.kind <= ToolKind::wait;
}

/// Null where this server has none of that name.
[[nodiscard]] const Tool* find_tool(std::string_view name, const agent::Facts& facts);
/// The answer to tools/list: the same for the same options.
[[nodiscard]] Json list_of_tools(const agent::Facts& facts);
/// What is wrong with them, in a sentence that says what to do; empty: nothing.
[[nodiscard]] std::string mistake_in(const Tool& tool, const Json& arguments,
                                     const agent::Facts& facts);

}  // namespace sbx::mcp
