#include "policy/document.hpp"

#include <string>
#include <string_view>

#include "policy/apply.hpp"

namespace sbx::policy {
namespace {

std::string choices(std::string_view section) {
  std::string text;
  for (const Key& key : keys()) {
    if (!key.name.starts_with(section)) continue;
    const std::string_view name = key.name.substr(section.size());
    const std::string_view first = name.substr(0, name.find('.'));
    // Tables stand where their first key stands, in brackets.
    const std::string shown =
        first.size() == name.size() ? std::string(first) : "[" + std::string(first) + "]";
    if (text.ends_with(shown)) continue;
    (text += text.empty() ? "" : ", ") += shown;
  }
  return text;
}

void report_unknown_key(const Member& member, const std::string& path, Reading& reading) {
  const std::string_view section(path.data(), path.size() - member.name.size());
  const std::string_view meant = suggest_key(path);
  const std::string where = section.empty()
                                ? "at the top"
                                : "of [" + std::string(section.substr(0, section.size() - 1)) + "]";
  std::string hint = meant.empty() ? "the keys " + where + " are " + choices(section)
                                   : "did you mean " + quoted(meant) + "?";
  if (!meant.empty() && !section.empty() && meant.starts_with(section)) {
    hint = "did you mean " + quoted(meant.substr(section.size())) + "?";
  }
  std::string shown = short_text(Node{.value = path});
  reading.report(member.line, member.column,
                 {"unknown-key", "unknown key " + std::move(shown), std::move(hint)});
}

void check_schema(const Node& value, Reading& reading) {
  const auto* number = value.as<std::int64_t>();
  if (number != nullptr && *number == 1) return;
  reading.report(value, {"unsupported-schema",
                         "schema " + short_text(value) + " is not one that this sbx reads",
                         "write schema = 1"});
}

// The path grows by at most 16 dotted parts and 16 nested values: syntax.cpp bounds both.
void apply_table(const Node::Table& table, const std::string& prefix, Reading& reading,
                 Policy& policy) {
  for (const Member& member : table) {
    if (reading.overwhelmed()) return;
    const std::string path = prefix + member.name;
    if (const Key* key = find_key(path)) {
      if (key->type == Type::schema) check_schema(member.value, reading);
      if (!key->of_text()) apply(*key, member.value, ListMode::append, reading, policy);
    } else if (!is_section(path)) {
      report_unknown_key(member, path, reading);
    } else if (const auto* inner = member.value.as<Node::Table>()) {
      apply_table(*inner, path + ".", reading, policy);
    } else {
      reading.report(
          member.value,
          {"wrong-type", path + " is a table, not " + std::string(kind_name(member.value)),
           "its keys are " + choices(path + ".")});
    }
  }
}

}  // namespace

void apply_document(const Node& document, Reading& reading, Policy& policy) {
  apply_table(*document.as<Node::Table>(), "", reading, policy);
}

}  // namespace sbx::policy
