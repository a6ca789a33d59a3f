#include <fmt/format.h>

#include <type_traits>

#include <sbx/outcome.hpp>

#include "base/json.hpp"
#include "base/text.hpp"
#include "cli/policy/command.hpp"
#include "policy/keys.hpp"
#include "policy/locate.hpp"
#include "policy/syntax.hpp"
#include "policy/write.hpp"

namespace sbx::cli::policy_verb {
namespace {

using policy::Key;
using policy::Policy;
using policy::SaidValue;

std::string_view last_of(std::string_view name) {
  return name.substr(name.rfind('.') + 1);  // npos + 1 is 0
}

// --- as TOML, each value with its origin as a comment

std::string with_origin(std::string line, const Origin& at) {
  constexpr std::size_t kColumn = 44;
  if (line.size() < kColumn) line.append(kColumn - line.size(), ' ');
  return line + "  # " + printable(at.text()) + "\n";
}

std::string key_lines(const Key& key, const Policy& policy) {
  const std::string name(last_of(key.name));
  const std::vector<SaidValue> values = policy::said_values(key, policy);
  if (!key.is_list() && !key.is_table())
    return values.empty() ? name + " = " + policy::value_toml(key, policy) + "\n"
                          : with_origin(name + " = " + values.front().toml, values.front().at);
  if (values.empty()) return name + (key.is_table() ? " = {}\n" : " = []\n");
  // TOML 1.0 requires an inline table on one line, so each member gets its own line.
  std::string text = key.is_table() ? "" : name + " = [\n";
  for (const SaidValue& value : values)
    text += key.is_table() ? with_origin(name + "." + value.name + " = " + value.toml, value.at)
                           : with_origin("  " + value.toml + ",", value.at);
  return text + (key.is_table() ? "" : "]\n");
}

std::string origin_text(const Policy& policy) {
  std::string text;
  std::string_view section;
  for (const Key& key : policy::keys()) {
    if (key.type == policy::Type::parents) continue;  // already merged into the policy
    if (section_of(key.name) != section) {
      section = section_of(key.name);
      text += fmt::format("\n[{}]\n", section);
    }
    text += key_lines(key, policy);
  }
  return text;
}

// --- as JSON

Json grant_json(const policy::PathGrant& grant) {
  Json json;
  put_name(json, "source", grant.source);
  if (!grant.target.empty()) put_name(json, "target", grant.target);
  if (grant.optional) json["optional"] = true;
  if (grant.special) json["special"] = true;
  return json;
}

template <class T>
Json value_json(const T& value) {
  if constexpr (std::is_same_v<T, policy::PathGrant>)
    return grant_json(value);
  else if constexpr (std::is_same_v<T, std::string>)
    return lossy_utf8(value);
  else if constexpr (std::is_same_v<T, policy::SyscallRule>)
    return policy::entry_toml(value);
  else if constexpr (std::is_same_v<T, Bytes> || std::is_same_v<T, Milliseconds>)
    return to_text(value);
  else
    return value;
}

template <class T>
Json sourced_json(const T& value, const Origin& origin) {
  return {{"value", value_json(value)}, {"origin", origin_json(origin)}};
}

Json key_json(const Key& key, const Policy& policy) {
  return std::visit(
      [&](const auto& at) -> Json {
        using At = std::decay_t<decltype(at)>;
        if constexpr (std::is_same_v<At, std::monostate>)
          return nullptr;
        else if constexpr (std::is_same_v<At, policy::Choice>)
          return sourced_json(std::string(policy::words(key).at(*at.value)), *at.origin);
        else if constexpr (requires { at->value; })
          return sourced_json(at->value, at->origin);
        else if constexpr (requires { at->contains(""); }) {
          Json table = Json::object();
          for (const auto& [name, value] : *at)
            table[lossy_utf8(name)] = sourced_json(value.value, value.origin);
          return table;
        } else {
          Json list = Json::array();
          for (const auto& entry : *at) list.push_back(sourced_json(entry.value, entry.origin));
          return list;
        }
      },
      policy::slot_of(key, policy));
}

std::string json_text(const Policy& policy) {
  Json json{{"schema", "sbx.values/1"}, {"sbx", SBX_VERSION}};
  put_name(json, "source", policy.source);
  put_names(json, "files", policy.files);
  Json values = Json::object();
  for (const Key& key : policy::keys())
    if (!key.of_text()) values[std::string(key.name)] = key_json(key, policy);
  json["keys"] = std::move(values);
  return dump(json);
}

// --- the text as it stands

int show_text(const Invocation& typed, const Surroundings& place) {
  const policy::LookIn where{.directory = place.context.working_directory};
  const auto text = policy::locate(typed.operands.front(), where, place.context);
  if (!text) return complain(typed, policy::Findings{text.error()});
  if (const int printed = print(std::string(text->text())); printed != kDone) return printed;
  // A mistake in it is said below the text.
  const auto policy = load_operand(typed.operands.front(), {}, place.context);
  return policy ? kDone : complain(typed, policy.error());
}

}  // namespace

int show(const Invocation& typed) {
  if (typed.operands.size() != 1)
    return usage(typed, "\"sbx policy show\" needs one policy", "\"sbx policy list\" names them");
  const auto place = look();
  if (!place) return complain(typed, place.error(), exit_status::kCouldNot);
  const bool merged = typed.effective || typed.origin || typed.output.json || !typed.sets.empty();
  if (!merged) return show_text(typed, *place);
  const auto policy = load_operand(typed.operands.front(), typed.sets, place->context);
  if (!policy) return complain(typed, policy.error());
  if (typed.output.json) return print(json_text(*policy));
  return print(typed.origin ? origin_text(*policy) : policy::write_for_hash(*policy));
}

}  // namespace sbx::cli::policy_verb
