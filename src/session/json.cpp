#include "session/json.hpp"

#include "base/text.hpp"

namespace sbx::session {

const Json& part(const Json& object, const char* key) {
  static const Json none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string text_of(const Json& element) {
  return element.is_string() ? element.get<std::string>() : std::string();
}

void put_binary(Json& object, const char* key, std::string_view bytes) {
  object[key] = Json::binary(std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
}

std::string binary_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_binary()) return {};
  const auto& bytes = found->get_binary();
  return {bytes.begin(), bytes.end()};
}

Json headed(const Json& body) {
  Json json{{"schema", "sbx.session/1"}, {"sbx", SBX_VERSION}};
  json.update(body);
  return json;
}

Json denials_to_json(const std::vector<Denial>& denials) {
  Json list = Json::array();
  for (const Denial& denial : denials) {
    Json each{{"kind", name_of(denial.kind)}, {"count", denial.count}, {"options", Json::array()}};
    put_binary(each, "what", denial.what);
    put_binary(each, "process", denial.process);
    put_binary(each, "rule", denial.rule);
    put_binary(each, "allow_with", denial.allow_with);
    put_binary(each, "risk", denial.risk);
    for (const std::string& option : denial.options) {
      Json holder;
      put_binary(holder, "text", option);
      each["options"].push_back(std::move(holder));
    }
    list.push_back(std::move(each));
  }
  return list;
}

std::vector<Denial> denials_from(const Json& list) {
  std::vector<Denial> denials;
  if (!list.is_array()) return denials;
  for (const Json& each : list) {
    Denial denial{.kind = denial_kind(member_or(each, "kind", "")).value_or(DenialKind{}),
                  .what = binary_of(each, "what"),
                  .count = member_or(each, "count", std::uint64_t{1}),
                  .process = binary_of(each, "process"),
                  .rule = binary_of(each, "rule"),
                  .allow_with = binary_of(each, "allow_with"),
                  .risk = binary_of(each, "risk")};
    for (const Json& option : each["options"]) denial.options.push_back(binary_of(option, "text"));
    denial.during_call = true;
    denials.push_back(std::move(denial));
  }
  return denials;
}

Json failures_to_json(const std::vector<NetworkFailure>& failures) {
  Json list = Json::array();
  for (const NetworkFailure& each : failures)
    list.push_back(
        {{"what", lossy_utf8(each.what)}, {"why", lossy_utf8(each.why)}, {"count", each.count}});
  return list;
}

std::vector<NetworkFailure> failures_from(const Json& list) {
  std::vector<NetworkFailure> failures;
  if (!list.is_array()) return failures;
  for (const Json& each : list)
    failures.push_back({.what = member_or(each, "what", ""),
                        .why = member_or(each, "why", ""),
                        .count = member_or(each, "count", std::uint64_t{1})});
  return failures;
}

}  // namespace sbx::session
