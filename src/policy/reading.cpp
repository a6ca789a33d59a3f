#include "policy/reading.hpp"

#include <algorithm>

namespace sbx::policy {
namespace {

constexpr std::size_t kMostFindings = 100;

std::string unquoted(std::string_view toml) {
  if (toml.size() >= 2 && toml.front() == '"' && toml.back() == '"')
    toml = toml.substr(1, toml.size() - 2);
  return std::string(toml);
}

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

Origin Reading::origin(int line, int column) const {
  if (typed()) return {.file = place_.file, .layer = place_.layer};
  return {.file = place_.file, .line = line, .column = column, .layer = place_.layer};
}

void Reading::report(int line, int column, Problem problem) {
  if (overwhelmed()) return;
  if (++found_ == kMostFindings) {
    problem = {"too-many-findings",
               "more is wrong with this file than the " + std::to_string(kMostFindings - 1) +
                   " findings above",
               "correct these first"};
  }
  findings_.push_back(Error{.kind = ErrorKind::policy,
                            .code = std::move(problem.code),
                            .message = std::move(problem.message),
                            .origin = origin(line, column),
                            .source_line = std::string(line_of(text_, typed() ? 1 : line)),
                            .hint = std::move(problem.hint)});
}

void Reading::report(const Key& key, const Node& at, Problem problem) {
  problem.message = std::string(key.name) + ": " + problem.message;
  report(at, std::move(problem));
}

bool Reading::overwhelmed() const {
  return found_ >= kMostFindings;
}

std::string Reading::cure(std::string_view key_name, std::string_view toml) const {
  if (!typed()) {
    const auto dot = key_name.rfind('.');
    const auto last = dot == std::string_view::npos ? key_name : key_name.substr(dot + 1);
    return "write " + std::string(last) + " = " + std::string(toml);
  }
  if (place_.file == "--set")
    return "write --set '" + std::string(key_name) + "=" + std::string(toml) + "'";
  return "write " + place_.file + " " + unquoted(toml);
}

void apply_document(const Node& document, Reading& reading, Policy& policy) {
  apply_table(*document.as<Node::Table>(), "", reading, policy);
}

void report_unknown(const Node::Table& table, std::span<const std::string_view> known,
                    std::string_view path, Reading& reading) {
  for (const Member& member : table) {
    if (std::ranges::find(known, member.name) != known.end()) continue;
    std::string list;
    for (const std::string_view name : known) (list += list.empty() ? "" : ", ") += name;
    const std::string_view meant = nearest(member.name, known);
    reading.report(
        member.line, member.column,
        {"unknown-key",
         "unknown key " + short_text(Node{.value = std::string(path) + "." + member.name}),
         meant.empty() ? "the keys here are " + list : "did you mean " + quoted(meant) + "?"});
  }
}

}  // namespace sbx::policy
