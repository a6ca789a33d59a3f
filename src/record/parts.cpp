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

std::string rule_of(const std::optional<policy::Policy>& policy, const std::string& limit,
                    const std::string& output_key) {
  const policy::Key* key = policy::find_key(limit == "output" ? output_key : "limits." + limit);
  if (!policy || key == nullptr) return {};
  const std::vector<policy::SaidValue> said = policy::said_values(*key, *policy);
  if (said.empty()) return {};
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

std::optional<protocol::PolicyFacts> policy_facts(const std::optional<policy::Policy>& policy) {
  if (!policy) return std::nullopt;
  return protocol::PolicyFacts{.name = policy->name.value,
                               .source = policy->source,
                               .sha256 = sha256_hex(policy::write_for_hash(*policy))};
}

Json policy_json(const std::optional<policy::Policy>& policy) {
  const auto facts = policy_facts(policy);
  return facts ? write_fields(*facts, Form::document) : Json(nullptr);
}

protocol::StreamFacts stream_facts(const Stream& stream) {
  Captured captured = captured_text(stream);
  protocol::StreamFacts facts{
      .text = std::move(captured.text),
      .bytes = stream.bytes,
      .truncated = stream.truncated,
      .encoding = captured.is_base64 ? protocol::Encoding::base64 : protocol::Encoding::utf8,
      .head_bytes = captured.head_bytes,
      .tail_bytes = captured.tail_bytes};
  if (stream.joined) facts.joined.emplace(true);
  return facts;
}

std::vector<protocol::LimitMetFacts> limits_met_facts(const std::vector<LimitMet>& limits,
                                                      const std::optional<policy::Policy>& policy) {
  std::vector<protocol::LimitMetFacts> facts;
  for (const LimitMet& met : limits) facts.push_back({met, rule_of(policy, met.limit)});
  return facts;
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

protocol::WriteErrorFacts write_error_facts(const WriteError& error) {
  return {.stream = error.stream,
          .error = ::strerrordesc_np(error.errno_value),
          .errno_ = error.errno_value};
}

}  // namespace sbx::record
