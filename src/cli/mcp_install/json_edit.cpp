#include "cli/mcp_install/json_edit.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/json_read.hpp"
#include "cli/mcp_install/json_spans.hpp"
#include "cli/mcp_install/not_editable.hpp"

namespace sbx::cli::mcp_install {
namespace {

std::string joined(std::span<const std::string> names) {
  std::string text;
  for (const std::string& each : names) text += (text.empty() ? "" : ".") + each;
  return text;
}

/// One line without the newline of pretty().
std::string json_line(const Json& value) {
  std::string text = pretty(value);
  text.pop_back();
  return text;
}

/// A chain of objects: {"a": {"b": value}} for a, b.
Json nested(std::span<const std::string> names, Json value) {
  for (std::size_t i = names.size(); i > 0; --i) {
    Json object = Json::object();
    object[names[i - 1]] = std::move(value);
    value = std::move(object);
  }
  return value;
}

/// How far names lead.
struct Way {
  std::size_t container = 0;  ///< where the object begins that has the last name, or lacks it
  std::size_t known = 0;      ///< how many names are there
  std::optional<Part> part;   ///< of the last of them
  std::size_t index = 0;      ///< of that in its object
};

Result<Way> follow(const std::string& text, const Names& names) {
  Way way{.container = past_space(text, 0)};
  for (const std::string& name : names) {
    if (way.part) way.container = way.part->value.begin;
    if (text[way.container] != '{')
      return not_editable("\"" + joined(std::span(names).first(way.known)) + "\" is not an object");
    const std::vector<Part> parts = parts_at(text, way.container);
    const auto found = std::ranges::find(parts, name, &Part::name);
    if (std::ranges::count(parts, name, &Part::name) > 1)
      return not_editable("\"" + name + "\" is there twice");
    if (found == parts.end()) return way;
    way.part = *found;
    way.index = static_cast<std::size_t>(found - parts.begin());
    ++way.known;
  }
  return way;
}

Json* member_at(Json& json, std::span<const std::string> names) {
  Json* here = &json;
  for (const std::string& name : names) {
    const auto found = here->find(name);
    if (found == here->end()) return nullptr;
    here = &*found;
  }
  return here;
}

std::optional<std::size_t> index_of(const Json& list, const std::string& word) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i] == word) return i;
  return std::nullopt;
}

}  // namespace

Result<JsonText> JsonText::read(std::string text) {
  JsonText result;
  if (past_space(text, 0) == text.size()) text = "{}\n";
  result.json_ = read_json(text);
  if (result.json_.is_discarded())
    return not_editable(Json::accept(text, true)
                            ? "it has comments, is too deep or has too many values"
                            : "it is not JSON");
  // Before it may be a byte order mark, which the reader skips.
  if (!result.json_.is_object() || text[past_space(text, 0)] != '{')
    return not_editable("it is not one JSON object");
  result.text_ = std::move(text);
  return result;
}

/// Most readers take the last of a name that is there twice.
const Json* JsonText::find(const Names& names) const {
  const Json* here = &json_;
  for (const std::string& name : names) {
    if (!here->is_object()) return nullptr;
    const auto& members = here->get_ref<const Json::object_t&>();
    const auto found = std::find_if(members.rbegin(), members.rend(),
                                    [&](const auto& each) { return each.first == name; });
    if (found == members.rend()) return nullptr;
    here = &found->second;
  }
  return here;
}

/// The safety net below the work on text: what it means must be what was meant.
Status JsonText::become(std::string text, const Json& expected) {
  Json json = read_json(text);
  if (json != expected) return not_editable("the edited text would not mean what it should");
  text_ = std::move(text);
  json_ = std::move(json);
  return {};
}

Status JsonText::set(const Names& names, const Json& value) {
  const Way way = SBX_TRY(follow(text_, names));
  Json expected = json_;
  if (way.known == names.size()) {
    Json* const here = member_at(expected, names);
    if (*here == value) return {};
    *here = value;
    return become(with_value(text_, *way.part, json_line(value)), expected);
  }
  const std::span<const std::string> all(names);
  const Json added = nested(all.subspan(way.known + 1), value);
  member_at(expected, all.first(way.known))
      ->get_ref<Json::object_t&>()
      .emplace_back(names[way.known], added);
  const std::string part = Json(names[way.known]).dump() + ": " + json_line(added);
  return become(with_part(text_, way.container, part), expected);
}

Status JsonText::drop(const Names& names) {
  const Way way = SBX_TRY(follow(text_, names));
  if (way.known < names.size()) return {};
  Json expected = json_;
  member_at(expected, std::span(names).first(names.size() - 1))->erase(names.back());
  return become(without_part(text_, way.container, way.index), expected);
}

Status JsonText::add_word(const Names& list, const std::string& word) {
  const Way way = SBX_TRY(follow(text_, list));
  if (way.known < list.size()) return set(list, std::vector<std::string>{word});
  Json expected = json_;
  Json* const here = member_at(expected, list);
  if (!here->is_array()) return not_editable("\"" + joined(list) + "\" is not a list");
  if (index_of(*here, word)) return {};
  here->push_back(word);
  return become(with_part(text_, way.part->value.begin, Json(word).dump()), expected);
}

Status JsonText::drop_word(const Names& list, const std::string& word) {
  const Way way = SBX_TRY(follow(text_, list));
  if (way.known < list.size()) return {};
  Json expected = json_;
  Json* const here = member_at(expected, list);
  if (!here->is_array()) return not_editable("\"" + joined(list) + "\" is not a list");
  const auto found = index_of(*here, word);
  if (!found) return {};
  here->erase(*found);
  SBX_TRY(become(without_part(text_, way.part->value.begin, *found), expected));
  return drop_word(list, word);
}

}  // namespace sbx::cli::mcp_install
