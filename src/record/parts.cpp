#include "record/parts.hpp"

#include <fmt/format.h>
#include <string.h>

#include "base/text.hpp"
#include "policy/keys.hpp"
#include "policy/load.hpp"
#include "policy/write.hpp"
#include "protocol/entries.hpp"
#include "record/captured.hpp"

namespace sbx::record {

const Json& part(const Json& object, const char* key) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

Json rule_of(const std::optional<policy::Policy>& policy, const std::string& limit,
             const std::string& output_key) {
  const policy::Key* key = policy::find_key(limit == "output" ? output_key : "limits." + limit);
  if (!policy || key == nullptr) return nullptr;
  const std::vector<policy::SaidValue> said = policy::said_values(*key, *policy);
  if (said.empty()) return nullptr;
  return lossy_utf8(
      fmt::format("{} = {} ({})", key->name, said.front().toml, said.front().at.text()));
}

std::string option_that_set(const policy::Policy* policy, const std::string& name) {
  const policy::Key* const key = policy::find_key(name);
  if (policy == nullptr || key == nullptr) return {};
  const std::vector<policy::SaidValue> said = policy::said_values(*key, *policy);
  if (said.empty() || said.front().at.layer != Layer::command_line) return {};
  return said.front().at.file;
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
  return write_list(denials, Form::document);
}

Json limits_met_json(const std::vector<LimitMet>& limits,
                     const std::optional<policy::Policy>& policy) {
  Json list = Json::array();
  for (const LimitMet& met : limits) {
    Json json = protocol::write_entry(met);
    json["rule"] = rule_of(policy, met.limit);
    list.push_back(std::move(json));
  }
  return list;
}

Json hints_json(const std::vector<Hint>& hints) {
  return write_list(hints, Form::document);
}

Json degraded_json(const std::vector<Degraded>& degraded) {
  return write_list(degraded, Form::document);
}

Json failures_json(const std::vector<NetworkFailure>& failures) {
  return write_list(failures, Form::document);
}

std::vector<Denial> denials_of(const Json& record) {
  return lib::read_list<Denial>(part(record, "denials"));
}

std::vector<NetworkFailure> failures_of(const Json& record) {
  return lib::read_list<NetworkFailure>(part(part(record, "network"), "failed"));
}

std::vector<Hint> hints_of(const Json& record) {
  return lib::read_list<Hint>(part(record, "hints"));
}

Json write_error_json(const WriteError& error) {
  return {{"stream", error.stream},
          {"error", ::strerrordesc_np(error.errno_value)},
          {"errno", error.errno_value}};
}

}  // namespace sbx::record
