#include "worker/message.hpp"

#include <tuple>
#include <type_traits>
#include <utility>

#include "base/json_read.hpp"

namespace sbx::worker {
namespace {

// The members of each struct, in order. A structured binding lists all members, so adding one
// without sending it doesn't compile.

template <class Struct>
auto members(Struct& request)
  requires std::is_same_v<std::remove_const_t<Struct>, run::Request>
{
  auto& [policies, overrides, policy, program, variables, bring_out, for_person, capture,
         lists_changes, trial, id, readers, parent, cancel, events, arguments, started_microseconds,
         call] = request;
  // Not sent: they belong to one process.
  (void)policy, (void)variables, (void)readers, (void)parent, (void)cancel, (void)events,
      (void)arguments, (void)started_microseconds, (void)call;
  return std::tie(policies, overrides, program, bring_out, for_person, capture, lists_changes,
                  trial, id);
}

template <class Struct>
auto members(Struct& operand)
  requires std::is_same_v<std::remove_const_t<Struct>, policy::PolicyOperand>
{
  auto& [text] = operand;
  return std::tie(text);
}

template <class Struct>
auto members(Struct& override)
  requires std::is_same_v<std::remove_const_t<Struct>, policy::Override>
{
  auto& [key, toml, option, append] = override;
  return std::tie(key, toml, option, append);
}

template <class Struct>
auto members(Struct& input)
  requires std::is_same_v<std::remove_const_t<Struct>, plan::Input>
{
  auto& [source, target] = input;
  return std::tie(source, target);
}

template <class Struct>
auto members(Struct& program)
  requires std::is_same_v<std::remove_const_t<Struct>, plan::RunRequest>
{
  auto& [hold, operands, after_dashes, language, code, code_from_stdin, interactive, stdin_mode,
         stdin_file, environment, inputs, directory, require, explain, umask] = program;
  return std::tie(hold, operands, after_dashes, language, code, code_from_stdin, interactive,
                  stdin_mode, stdin_file, environment, inputs, directory, require, explain, umask);
}

template <class Struct>
auto members(Struct& request)
  requires std::is_same_v<std::remove_const_t<Struct>, changes::BringOutOptions>
{
  auto& [directory, collect, diff, apply, patterns, yes, keep] = request;
  return std::tie(directory, collect, diff, apply, patterns, yes, keep);
}

// To JSON and back. Transferred as CBOR (RFC 8949), whose strings may be bytes.

Json to_json(const std::string& text) {
  return text;
}
Json to_json(bool value) {
  return value;
}
Json to_json(mode_t mode) {
  return mode;
}
template <class Enum>
Json to_json(Enum value)
  requires std::is_enum_v<Enum>
{
  return static_cast<int>(value);
}
template <class First, class Second>
Json to_json(const std::pair<First, Second>& pair);
template <class Value>
Json to_json(const std::optional<Value>& value);
template <class Value>
Json to_json(const std::vector<Value>& list);
template <class Struct>
Json to_json(const Struct& value)
  requires requires { members(value); }
{
  Json json = Json::array();
  std::apply([&](const auto&... each) { (json.push_back(to_json(each)), ...); }, members(value));
  return json;
}
template <class First, class Second>
Json to_json(const std::pair<First, Second>& pair) {
  return Json::array({to_json(pair.first), to_json(pair.second)});
}
template <class Value>
Json to_json(const std::optional<Value>& value) {
  return value ? to_json(*value) : Json(nullptr);
}
template <class Value>
Json to_json(const std::vector<Value>& list) {
  Json json = Json::array();
  for (const Value& each : list) json.push_back(to_json(each));
  return json;
}

bool from_json(const Json& json, std::string& text) {
  if (!json.is_string()) return false;
  text = json.get<std::string>();
  return true;
}
bool from_json(const Json& json, bool& value) {
  if (!json.is_boolean()) return false;
  value = json.get<bool>();
  return true;
}
bool from_json(const Json& json, mode_t& mode) {
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() > 0777) return false;
  mode = json.get<mode_t>();
  return true;
}
bool from_json(const Json& json, plan::StdinMode& mode) {
  if (!json.is_number_integer()) return false;
  const auto number = json.get<std::int64_t>();
  mode = static_cast<plan::StdinMode>(number);
  return number >= 0 && number <= static_cast<int>(plan::StdinMode::file);
}
template <class First, class Second>
bool from_json(const Json& json, std::pair<First, Second>& pair);
template <class Value>
bool from_json(const Json& json, std::optional<Value>& value);
template <class Value>
bool from_json(const Json& json, std::vector<Value>& list);
template <class Struct>
bool from_json(const Json& json, Struct& value)
  requires requires { members(value); }
{
  const auto all = members(value);
  if (!json.is_array() || json.size() != std::tuple_size_v<decltype(all)>) return false;
  std::size_t at = 0;
  return std::apply([&](auto&... each) { return (from_json(json[at++], each) && ...); }, all);
}
template <class First, class Second>
bool from_json(const Json& json, std::pair<First, Second>& pair) {
  return json.is_array() && json.size() == 2 && from_json(json[0], pair.first) &&
         from_json(json[1], pair.second);
}
template <class Value>
bool from_json(const Json& json, std::optional<Value>& value) {
  if (json.is_null()) return true;
  return from_json(json, value.emplace());
}
template <class Value>
bool from_json(const Json& json, std::vector<Value>& list) {
  if (!json.is_array()) return false;
  for (const Json& each : json)
    if (!from_json(each, list.emplace_back())) return false;
  return true;
}

}  // namespace

std::string pack(const run::Request& request) {
  std::string bytes;
  Json::to_cbor(to_json(request), bytes);
  return bytes;
}

Result<run::Request> unpack(std::string_view bytes) {
  const Json json = read_cbor(bytes);
  run::Request request;
  if (!json.is_discarded() && from_json(json, request)) return request;
  return fail(Error{.kind = ErrorKind::internal,
                    .code = "bad-request",
                    .message = "the worker was sent a request that it can't read"});
}

}  // namespace sbx::worker
