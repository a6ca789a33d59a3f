#include "cli/policy/schema.hpp"

#include "base/json.hpp"
#include "cli/policy/command.hpp"
#include "policy/keys.hpp"
#include "policy/write.hpp"

namespace sbx::cli {
namespace {

using policy::Key;
using policy::Type;

// Spelled out, because JSON Schema patterns can't name their parts. At most three decimal places,
// as in units.hpp.
constexpr const char* kSizePattern = "^[0-9]+(\\.[0-9]{1,3})?[BKMGT]$";
constexpr const char* kDurationPattern = "^[0-9]+(\\.[0-9]{1,3})?(ms|s|m|h)$";

Json string_list() {
  return {{"type", "array"}, {"items", {{"type", "string"}}}};
}

Json closed(Json properties, Json required = Json::array()) {
  Json json{{"type", "object"}, {"additionalProperties", false}};
  json["properties"] = std::move(properties);
  if (!required.empty()) json["required"] = std::move(required);
  return json;
}

/// A list appends; { replace = [...] } discards the entries of weaker layers.
Json list_of(const Json& items) {
  const Json list{{"type", "array"}, {"items", items}};
  return {{"anyOf", Json::array({list, closed({{"replace", list}}, Json::array({"replace"}))})}};
}

Json table_of(const Json& value) {
  Json json{{"type", "object"}, {"additionalProperties", value}};
  json["properties"] = {{"unset", string_list()}};
  return json;
}

Json grant_items(const Key& key) {
  const Json text{{"type", "string"}};
  const Json flag{{"type", "boolean"}};
  Json members{{"source", text}, {"target", text}, {"optional", flag}};
  if (key.name == "filesystem.write") members["special"] = flag;
  const Json table = closed(std::move(members), Json::array({"source"}));
  return {{"anyOf", Json::array({text, table})}};
}

Json rule_items() {
  const Json symbol{{"anyOf", Json::array({Json{{"type", "integer"}}, Json{{"type", "string"}}})}};
  const Json value{{"anyOf", Json::array({symbol, Json{{"type", "array"}, {"items", symbol}}})}};
  Json when = closed(
      {{"arg", {{"type", "integer"}, {"minimum", 0}, {"maximum", 5}}},
       {"op", {{"enum", Json::array({"eq", "ne", "lt", "le", "gt", "ge", "in", "masked_eq"})}}},
       {"value", value}});
  return closed({{"name", {{"type", "string"}}},
                 {"when", std::move(when)},
                 {"action", {{"enum", Json::array({"allow", "deny"})}}},
                 {"reason", {{"type", "string"}}}},
                Json::array({"name"}));
}

/// The bounds in "1..100000000".
void put_range(Json& json, const Key& key) {
  const auto dots = key.accepts.find("..");
  if (dots == std::string_view::npos) return;
  json["minimum"] = Json::parse(key.accepts.substr(0, dots), nullptr, false);
  json["maximum"] = Json::parse(key.accepts.substr(dots + 2), nullptr, false);
}

Json value_schema(const Key& key) {
  switch (key.type) {
    case Type::schema:
      return {{"const", 1}};
    case Type::parents:
      return {{"anyOf", Json::array({Json{{"type", "string"}}, string_list()})}};
    case Type::boolean:
      return {{"type", "boolean"}};
    case Type::count:
    case Type::number: {
      Json json{{"type", key.type == Type::count ? "integer" : "number"}};
      put_range(json, key);
      return json;
    }
    case Type::size:
      return {{"type", "string"}, {"pattern", kSizePattern}};
    case Type::duration:
      return {{"type", "string"}, {"pattern", kDurationPattern}};
    case Type::word: {
      Json words = Json::array();
      for (const std::string_view word : policy::words(key)) words.push_back(word);
      return {{"enum", std::move(words)}};
    }
    case Type::text:
      return {{"type", "string"}};
    case Type::texts:
      return list_of({{"type", "string"}});
    case Type::grants:
      return list_of(grant_items(key));
    case Type::rules:
      return list_of(rule_items());
    case Type::text_table:
      return table_of({{"type", "string"}});
    case Type::list_table:
      return table_of(string_list());
  }
  return Json::object();
}

Json described(const Key& key) {
  Json json = value_schema(key);
  json["description"] = key.documentation;
  if (!key.is_list() && !key.is_table() && !key.of_text())
    if (Json initial = Json::parse(policy::initial_toml(key), nullptr, false);
        !initial.is_discarded())
      json["default"] = std::move(initial);
  return json;
}

/// The object for a key's section; sections are nested objects.
Json& section(Json& root, std::string_view name) {
  Json* at = &root;
  for (const std::string_view part : policy::split(name, '.')) {
    Json& properties = (*at)["properties"];
    if (!properties.contains(std::string(part)))
      properties[std::string(part)] = closed(Json::object());
    at = &properties[std::string(part)];
  }
  return *at;
}

}  // namespace

std::string policy_schema() {
  Json root{{"$schema", "http://json-schema.org/draft-07/schema#"},
            {"title", "sbx policy, schema 1"},
            {"description", "What a program run by sbx may do: sbx-policy(5)."}};
  root.update(closed(Json::object()));
  for (const Key& key : policy::keys()) {
    const auto dot = key.name.rfind('.');
    const std::string_view where = dot == std::string_view::npos ? "" : key.name.substr(0, dot);
    section(root, where)["properties"][std::string(key.name.substr(dot + 1))] = described(key);
  }
  return pretty(root);
}

int policy_verb::schema(const Invocation& typed) {
  if (!typed.operands.empty())
    return usage(typed, "\"sbx policy schema\" takes no operands",
                 "leave it out: sbx policy schema");
  return print(policy_schema());
}

}  // namespace sbx::cli
