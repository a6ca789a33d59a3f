#include "cli/mcp_install/toml_edit.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "cli/mcp_install/not_editable.hpp"
#include "policy/quoting.hpp"
#include "policy/syntax.hpp"

namespace sbx::cli::mcp_install {
namespace {

Json json_of(const policy::Node& node) {
  using Node = policy::Node;
  if (const auto* const list = node.as<Node::List>()) {
    Json json = Json::array();
    for (const Node& each : *list) json.push_back(json_of(each));
    return json;
  }
  if (const auto* const table = node.as<Node::Table>()) {
    Json json = Json::object();
    for (const policy::Member& each : *table) json[each.name] = json_of(each.value);
    return json;
  }
  if (const auto* const text = node.as<std::string>()) return *text;
  if (const auto* const number = node.as<std::int64_t>()) return *number;
  if (const auto* const number = node.as<double>()) return *number;
  if (const auto* const flag = node.as<bool>()) return *flag;
  return nullptr;
}

Result<Json> parse(const std::string& text) {
  const auto node = policy::read_toml(text);
  if (!node) return not_editable("it is not TOML: " + node.error().message);
  return json_of(*node);
}

std::string begin_of(const Block& block) {
  return "# begin: " + block.about + "\n";
}
std::string end_of(const Block& block) {
  return "# end: " + block.about + "\n";
}

const Json* table_at(const Json& json, const Names& names) {
  const Json* here = &json;
  for (const std::string& name : names) {
    const auto found = here->find(name);
    if (found == here->end()) return nullptr;
    here = &*found;
  }
  return here;
}

/// Removes the member, and what is empty on the way to it.
void forget(Json& json, std::span<const std::string> names) {
  const auto found = json.find(names.front());
  if (found == json.end()) return;
  if (names.size() > 1) forget(*found, names.subspan(1));
  if (names.size() == 1 || found->empty()) json.erase(names.front());
}

bool is_same(const Json& left, const Json& right) {
  return nlohmann::json(left) == nlohmann::json(right);  // tables have no order
}
bool is_same_but_for(const Names& names, Json left, Json right) {
  forget(left, names);
  forget(right, names);
  return is_same(left, right);
}

/// The text without the block of such marks, and without the line that put() sets before it.
/// Nothing where there is none.
std::optional<std::string> without(const std::string& text, const Block& block) {
  const std::string mark = begin_of(block);
  std::size_t begin = text.starts_with(mark) ? 0 : text.find("\n" + mark);
  if (begin == std::string::npos) return std::nullopt;
  if (begin > 0) ++begin;
  const std::size_t end = text.find("\n" + end_of(block), begin);
  if (end == std::string::npos) return std::nullopt;
  const std::size_t past = end + 1 + end_of(block).size();
  if (text.substr(0, begin).ends_with("\n\n")) --begin;
  return text.substr(0, begin) + text.substr(past);
}

/// The text without the table and those below it, however they are spread, and without the marks.
std::string without_tables(const std::string& text, const Block& block) {
  std::string header = "[";
  for (const std::string& name : block.names)
    header += (header.size() > 1 ? "." : "") + policy::key_text(name);
  std::string rest;
  bool is_inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, end - at);
    at = end;
    if (line == begin_of(block) || line == end_of(block)) continue;
    if (line.starts_with('['))
      is_inside = line.starts_with(header + "]") || line.starts_with(header + ".");
    if (!is_inside || line.starts_with('#')) rest += line;
  }
  return rest;
}

}  // namespace

std::string text_of(const Block& block) {
  return begin_of(block) + block.lines + end_of(block);
}

Result<TomlText> TomlText::read(std::string text) {
  TomlText result;
  result.json_ = SBX_TRY(parse(text));
  result.text_ = std::move(text);
  return result;
}

const Json* TomlText::find(const Names& names) const {
  return table_at(json_, names);
}

/// The safety net below the work on lines: but for the block's table all must mean what it did.
bool TomlText::take(std::string text, const Names& names) {
  auto left = parse(text);
  if (!left || table_at(*left, names) != nullptr || !is_same_but_for(names, *left, json_))
    return false;
  text_ = std::move(text);
  json_ = std::move(*left);
  return true;
}

Status TomlText::drop(const Block& block) {
  if (auto text = without(text_, block); text && take(std::move(*text), block.names)) return {};
  if (find(block.names) == nullptr) return {};
  if (block.is_own && take(without_tables(text_, block), block.names)) return {};
  return not_editable("it has this table outside of what sbx has written");
}

Status TomlText::put(const Block& block) {
  const Json added = SBX_TRY(parse(block.lines));
  const Json& wanted = *table_at(added, block.names);
  const Json* const there = find(block.names);
  if (there != nullptr && is_same(*there, wanted) && text_.contains(text_of(block))) return {};
  TomlText next = *this;
  SBX_TRY(next.drop(block));
  if (!next.text_.empty()) next.text_ += next.text_.ends_with('\n') ? "\n" : "\n\n";
  next.text_ += text_of(block);
  Json json = SBX_TRY(parse(next.text_));
  const Json* const now = table_at(json, block.names);
  if (now == nullptr || !is_same(*now, wanted) || !is_same_but_for(block.names, json, next.json_))
    return not_editable("a table at its end would not mean what it should");
  next.json_ = std::move(json);
  *this = std::move(next);
  return {};
}

}  // namespace sbx::cli::mcp_install
