#include "record/parts.hpp"

#include <fmt/format.h>
#include <string.h>

#include "base/text.hpp"
#include "policy/keys.hpp"
#include "policy/load.hpp"
#include "policy/write.hpp"
#include "record/captured.hpp"

namespace sbx::record {

Json rule_of(const std::optional<policy::Policy>& policy, const std::string& limit,
             const std::string& output_key) {
  const policy::Key* key = policy::find_key(limit == "output" ? output_key : "limits." + limit);
  if (!policy || key == nullptr) return nullptr;
  const std::vector<policy::SaidValue> said = policy::said_values(*key, *policy);
  if (said.empty()) return nullptr;
  return lossy_utf8(
      fmt::format("{} = {} ({})", key->name, said.front().toml, said.front().at.text()));
}

Json policy_json(const std::optional<policy::Policy>& policy) {
  if (!policy) return nullptr;
  Json json;
  put_name(json, "name", policy->name.value);
  put_name(json, "source", policy->source);
  json["sha256"] = sha256_hex(policy::write_for_hash(*policy));
  return json;
}

Json stream_json(const Stream& stream) {
  const Captured captured = captured_text(stream);
  Json json;
  if (captured.text)
    json["text"] = *captured.text;
  else
    json["text"] = nullptr;
  json["bytes"] = stream.bytes;
  json["truncated"] = stream.truncated;
  json["encoding"] = captured.is_base64 ? "base64" : "utf-8";
  json["head_bytes"] = captured.head_bytes;
  json["tail_bytes"] = captured.tail_bytes;
  if (stream.joined) json["joined"] = true;
  return json;
}

Json denials_json(const std::vector<Denial>& denials) {
  Json list = Json::array();
  for (const Denial& denial : denials) {
    Json json;
    json["kind"] = name_of(denial.kind);
    put_name(json, "what", denial.what);
    json["count"] = denial.count;
    put_name(json, "process", denial.process);
    put_name(json, "rule", denial.rule);
    put_name(json, "allow_with", denial.allow_with);
    json["risk"] = denial.risk;
    if (denial.during_call) json["during_call"] = true;
    if (!denial.options.empty()) put_names(json, "options", denial.options);
    list.push_back(std::move(json));
  }
  return list;
}

Json hints_json(const std::vector<Hint>& hints) {
  Json list = Json::array();
  for (const Hint& hint : hints) {
    Json json;
    json["kind"] = name_of(hint.kind);
    put_name(json, "what", hint.what);
    put_name(json, "text", hint.text);
    put_names(json, "options", hint.options);
    json["perhaps"] = hint.perhaps;
    list.push_back(std::move(json));
  }
  return list;
}

std::vector<Denial> denials_of(const Json& record) {
  std::vector<Denial> denials;
  for (const Json& each : record.value("denials", Json::array()))
    denials.push_back({.kind = denial_kind(each.value("kind", "")).value_or(DenialKind::syscall),
                       .what = each.value("what", ""),
                       .count = each.value("count", std::uint64_t{1}),
                       .process = each.value("process", ""),
                       .rule = each.value("rule", ""),
                       .allow_with = each.value("allow_with", ""),
                       .risk = each.value("risk", ""),
                       .options = each.value("options", std::vector<std::string>()),
                       .during_call = each.value("during_call", false)});
  return denials;
}

Json degraded_json(const std::vector<Degraded>& degraded) {
  Json list = Json::array();
  for (const Degraded& item : degraded)
    list.push_back({{"what", item.what()},
                    {"why", item.why},
                    {"instead", item.instead.empty() ? Json(nullptr) : Json(item.instead)}});
  return list;
}

Json failures_json(const std::vector<NetworkFailure>& failures) {
  Json list = Json::array();
  for (const NetworkFailure& each : failures)
    list.push_back({{"what", each.what}, {"why", each.why}, {"count", each.count}});
  return list;
}

std::vector<NetworkFailure> failures_of(const Json& record) {
  std::vector<NetworkFailure> failures;
  const auto network = record.find("network");
  if (network == record.end() || !network->is_object()) return failures;
  for (const Json& each : network->value("failed", Json::array()))
    failures.push_back({.what = each.value("what", ""),
                        .why = each.value("why", ""),
                        .count = each.value("count", std::uint64_t{1})});
  return failures;
}

Json write_error_json(const WriteError& error) {
  return {{"stream", error.stream},
          {"error", ::strerrordesc_np(error.errno_value)},
          {"errno", error.errno_value}};
}

}  // namespace sbx::record
