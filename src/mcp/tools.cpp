#include "mcp/tools.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/text.hpp"

namespace sbx::mcp {
namespace {

using enum ArgumentKind;

constexpr std::size_t kLongestPath = 4096;
constexpr std::int64_t kLongestWait = 300;
constexpr Argument kWait{
    .name = "wait_s",
    .kind = integer,
    .is_required = false,
    .text = "Seconds to wait for the end before a job_id is given; 45 if absent.",
    .least = 0,
    .most = kLongestWait};
constexpr Argument kTimeout{.name = "timeout_s",
                            .kind = integer,
                            .is_required = false,
                            .text = "Stop it after so many seconds.",
                            .least = 1};

constexpr Argument kRunCode[] = {
    {"code", text, true, "The code; the value of its last expression is part of the result."},
    {"language", language, false, "Without it: that of context_id, else python."},
    {"context_id", text, false, "Of an earlier result: keeps its variables."},
    {"restart", boolean, false, "Forget the context's variables first."},
    kTimeout,
    kWait};
constexpr Argument kRunCommand[] = {
    {"command", word, true, "For bash -c."},
    {"cwd", path, false, "The directory to run in; relative to the working directory."},
    kTimeout,
    kWait};
constexpr Argument kWaitFor[] = {{"job_id", text, true, "Of an earlier result."},
                                 kWait,
                                 {"kill", boolean, false, "End the job."}};

constexpr std::int64_t kMostOfFile = std::int64_t{64} << 20;
constexpr std::int64_t kLargestOffset = std::int64_t{1} << 50;  // a double has it exactly
constexpr Argument kReadFile[] = {
    {"path", path, true, "A file or a directory; relative to the working directory."},
    {.name = "offset",
     .kind = integer,
     .is_required = false,
     .text = "Bytes to leave out first.",
     .least = 0,
     .most = kLargestOffset},
    {.name = "limit",
     .kind = integer,
     .is_required = false,
     .text = "Bytes to read; 20000 if absent.",
     .least = 1,
     .most = kMostOfFile}};
constexpr Argument kWriteFile[] = {
    {"path", path, true, "Relative to the working directory; directories are made."},
    {"content", text, true, "All that the file has then."},
    {"encoding", encoding, false, "Of content; utf-8 if absent."}};
constexpr Argument kChanges[] = {
    {"path", path, false, "Only this one, and what is below it; all if absent."},
    {"diff", boolean, false, "Show texts line by line, not only names."}};

constexpr Argument kApplyChanges[] = {
    {"paths", paths, true, "Changed files, as changes names them; no patterns, no directories."}};

constexpr Tool kTools[] = {
    {ToolKind::run_code, "run_code",
     "Run code in the sandbox. Without context_id in a fresh interpreter, whose context_id is in "
     "the "
     "result; with it in that one, which has kept its variables. PNG and JPEG pictures come back "
     "as "
     "images.",
     kRunCode, false, false, true, true},
    {ToolKind::run_command, "run_command",
     "Run a shell command in the sandbox. Its exit status is in the first line of the result. With "
     "wait_s 0 it goes on in the background, and wait gives its result.",
     kRunCommand, false, false, true, true},
    {ToolKind::wait, "wait",
     "Wait for a job that is still running, and give its result; or end it with kill.", kWaitFor,
     false, true, false, true},
    {ToolKind::read_file, "read_file",
     "Read a file of the sandbox, or list a directory. A picture comes back as an image.",
     kReadFile, true, true, false, true},
    {ToolKind::write_file, "write_file",
     "Write a file of the sandbox; one that is there is replaced.", kWriteFile, false, true, false,
     false, true},
    {ToolKind::changes, "changes",
     "List what the sandbox has changed in the working directory. It reaches the user's directory "
     "only when the user applies it.",
     kChanges, true, true, false, true},
    {ToolKind::get_policy,
     "get_policy",
     "Say what the sandbox allows: directories, hosts, budgets, languages.",
     {},
     true,
     true,
     false,
     false},
    {.kind = ToolKind::apply_changes,
     .name = "apply_changes",
     .text =
         "Write the named changes to the user's own directory. All of them, or none where one is a "
         "conflict with what the user has changed, or a protected name.",
     .arguments = kApplyChanges,
     .is_read_only = false,
     .is_idempotent = false,
     .runs_programs = false,
     .has_long_answer = false},
};
constexpr std::size_t kMostPaths = 1000;

std::int64_t most_of(const Argument& argument, const agent::Facts& facts) {
  if (argument.most > 0) return argument.most;
  constexpr std::int64_t kUnlimited = 86'400;
  const auto wall =
      std::chrono::duration_cast<std::chrono::seconds>(facts.policy.limits.wall_time.value);
  return wall.count() == 0 ? kUnlimited : wall.count();
}

Json input_schema(const Argument& argument, const agent::Facts& facts) {
  Json schema = Json::object();
  switch (argument.kind) {
    case integer:
      schema["type"] = "integer";
      schema["minimum"] = argument.least;
      schema["maximum"] = most_of(argument, facts);
      break;
    case boolean:
      schema["type"] = "boolean";
      break;
    case language:
      schema["type"] = "string";
      schema["enum"] = facts.languages;
      break;
    case encoding:
      schema["type"] = "string";
      schema["enum"] = {"utf-8", "base64"};
      break;
    case paths:
      schema["type"] = "array";
      schema["items"] = {{"type", "string"}};
      schema["minItems"] = 1;
      schema["maxItems"] = kMostPaths;
      break;
    case text:
    case word:
    case path:
      schema["type"] = "string";
      break;
  }
  schema["description"] = argument.text;
  return schema;
}

Json json_of(const Tool& tool, const agent::Facts& facts) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const Argument& each : tool.arguments) {
    properties[each.name] = input_schema(each, facts);
    if (each.is_required) required.push_back(each.name);
  }
  Json schema{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  Json json{{"name", tool.name},
            {"description", tool.text},
            {"inputSchema", std::move(schema)},
            {"annotations",
             {{"readOnlyHint", tool.is_read_only},
              {"destructiveHint", tool.kind == ToolKind::apply_changes ||
                                      ((tool.runs_programs || tool.writes) && facts.is_live)},
              {"idempotentHint", tool.is_idempotent},
              {"openWorldHint", tool.runs_programs && facts.reaches_network}}}};
  // Claude Code else puts what is longer than 50,000 characters aside.
  constexpr std::size_t kOwnLines = 10'000;
  if (facts.is_structured && gives_record(tool)) json["outputSchema"] = {{"type", "object"}};
  if (tool.has_long_answer)
    json["_meta"] = {{"anthropic/maxResultSizeChars", facts.max_text + kOwnLines}};
  return json;
}

/// Only a copy has changes that are not the user's yet.
bool is_offered(const Tool& tool, const agent::Facts& facts) {
  if (tool.kind == ToolKind::apply_changes) return facts.allows_apply;
  return tool.kind != ToolKind::changes || facts.is_copy;
}

/// A word of the client's in a sentence of ours.
std::string quoted(const std::string& word) {
  constexpr std::size_t kLongest = 100;
  return "\"" + shortened(printable(word.substr(0, 2 * kLongest)), kLongest) + "\"";
}

std::string names_of(const Tool& tool) {
  std::string names;
  for (const Argument& each : tool.arguments)
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names.empty() ? "none" : names;
}

bool is_path(const Json& value) {
  if (!value.is_string()) return false;
  const auto& path = value.get_ref<const std::string&>();
  return !path.empty() && path.size() <= kLongestPath && !path.contains('\0');
}

std::string mistake_in_value(const Argument& argument, const Json& value,
                             const agent::Facts& facts) {
  const auto needs = [&](const std::string& what) {
    return fmt::format("argument \"{}\" must be {}: correct it and call again", argument.name,
                       what);
  };
  switch (argument.kind) {
    case integer: {
      const std::int64_t most = most_of(argument, facts);
      const bool fits = value.is_number_integer() && value >= argument.least && value <= most;
      return fits ? "" : needs(fmt::format("an integer from {} to {}", argument.least, most));
    }
    case boolean:
      return value.is_boolean() ? "" : needs("true or false");
    case language: {
      const auto is_it = [&](const std::string& each) { return value == each; };
      const bool is_known = std::ranges::any_of(facts.languages, is_it);
      return is_known ? "" : needs(fmt::format("one of {}", fmt::join(facts.languages, ", ")));
    }
    case encoding:
      return value == "utf-8" || value == "base64" ? "" : needs("utf-8 or base64");
    case paths:
      return value.is_array() && !value.empty() && value.size() <= kMostPaths &&
                     std::all_of(value.begin(), value.end(), is_path)
                 ? ""
                 : needs("a list of 1 to 1000 paths");
    case text:
      return value.is_string() ? "" : needs("a string");
    case word:
    case path:
      if (!value.is_string()) return needs("a string");
      if (argument.kind == path && value.get_ref<const std::string&>().size() > kLongestPath)
        return needs("of at most 4096 bytes");
      return value.get_ref<const std::string&>().contains('\0') ? needs("without NUL characters")
                                                                : "";
  }
  return {};
}

}  // namespace

const Tool* find_tool(std::string_view name, const agent::Facts& facts) {
  const auto* const found = std::ranges::find(kTools, name, &Tool::name);
  return found == std::end(kTools) || !is_offered(*found, facts) ? nullptr : found;
}

Json list_of_tools(const agent::Facts& facts) {
  Json tools = Json::array();
  for (const Tool& each : kTools)
    if (is_offered(each, facts)) tools.push_back(json_of(each, facts));
  return {{"tools", std::move(tools)}};
}

std::string mistake_in(const Tool& tool, const Json& arguments, const agent::Facts& facts) {
  for (const auto& [name, value] : arguments.items()) {
    const auto found = std::ranges::find(tool.arguments, std::string_view(name), &Argument::name);
    if (found == tool.arguments.end())
      return fmt::format("unknown argument {}: the arguments of {} are {}", quoted(name), tool.name,
                         names_of(tool));
    if (std::string mistake = mistake_in_value(*found, value, facts); !mistake.empty())
      return mistake;
  }
  for (const Argument& each : tool.arguments)
    if (each.is_required && !arguments.contains(each.name))
      return fmt::format("argument \"{}\" is missing: give it and call again", each.name);
  return {};
}

}  // namespace sbx::mcp
