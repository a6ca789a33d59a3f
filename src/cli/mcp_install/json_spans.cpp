#include "cli/mcp_install/json_spans.hpp"

#include <algorithm>

#include "base/json_read.hpp"

namespace sbx::cli::mcp_install {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return at + 1;
}

std::size_t end_of_value(std::string_view text, std::size_t at) {
  if (text[at] == '"') return end_of_string(text, at);
  if (text[at] != '{' && text[at] != '[')
    return std::min(text.find_first_of(",]} \t\r\n", at), text.size());
  std::size_t depth = 0;
  do {
    if (text[at] == '"') {
      at = end_of_string(text, at);
      continue;
    }
    if (text[at] == '{' || text[at] == '[') ++depth;
    if (text[at] == '}' || text[at] == ']') --depth;
    ++at;
  } while (depth > 0);
  return at;
}

/// The white space that begins the line of a position.
std::string indent_of(std::string_view text, std::size_t at) {
  const std::size_t feed = text.substr(0, at).rfind('\n');
  const std::size_t begin = feed == std::string_view::npos ? 0 : feed + 1;
  return std::string(
      text.substr(begin, std::min(text.find_first_not_of(" \t", begin), at) - begin));
}

/// What each level is indented by: as the first line of the outermost object, else two blanks.
std::string unit_of(std::string_view text) {
  const std::size_t open = past_space(text, 0);
  const std::size_t first = past_space(text, open + 1);
  const std::string unit = indent_of(text, first);
  return unit.empty() || text[first] == '}' ? "  " : unit;
}

/// A text of pretty() in the form of its new neighbours.
std::string placed(std::string_view part, const std::string& indent, const std::string& unit) {
  std::string text;
  for (std::size_t at = 0; at < part.size();) {
    const std::size_t end = std::min(part.find('\n', at), part.size());
    const std::size_t first = std::min(part.find_first_not_of(' ', at), end);
    if (at > 0) text += "\n" + indent;
    for (std::size_t level = 0; level < (first - at) / 2; ++level) text += unit;
    text += part.substr(first, end - first);
    at = end + 1;
  }
  return text;
}

}  // namespace

std::size_t past_space(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(kSpace, at), text.size());
}

std::vector<Part> parts_at(std::string_view text, std::size_t at) {
  const bool is_object = text[at] == '{';
  std::vector<Part> parts;
  for (at = past_space(text, at + 1); text[at] != '}' && text[at] != ']';) {
    Part part{.name = {}, .whole = {.begin = at}};
    if (is_object) {
      const std::size_t end = end_of_string(text, at);
      part.name = read_json(text.substr(at, end - at)).get<std::string>();
      at = past_space(text, past_space(text, end) + 1);  // the colon
    }
    part.value = {at, end_of_value(text, at)};
    part.whole.end = part.value.end;
    parts.push_back(std::move(part));
    at = past_space(text, parts.back().value.end);
    if (text[at] == ',') at = past_space(text, at + 1);
  }
  return parts;
}

std::string with_part(const std::string& text, std::size_t at, const std::string& part) {
  const std::vector<Part> parts = parts_at(text, at);
  const std::string unit = unit_of(text);
  if (parts.empty()) {
    const std::string outer = indent_of(text, at);
    const std::size_t end = past_space(text, at + 1);
    return text.substr(0, at + 1) + "\n" + outer + unit + placed(part, outer + unit, unit) + "\n" +
           outer + text.substr(end);
  }
  const Part& last = parts.back();
  const std::size_t before = parts.size() > 1 ? parts[parts.size() - 2].whole.end : at;
  std::string lead = text.substr(before, last.whole.begin - before);
  lead.erase(0, lead.find_first_of("{[,") + 1);
  return text.substr(0, last.whole.end) + "," + lead +
         placed(part, indent_of(text, last.whole.begin), unit) + text.substr(last.whole.end);
}

std::string with_value(const std::string& text, const Part& part, const std::string& value) {
  return text.substr(0, part.value.begin) +
         placed(value, indent_of(text, part.whole.begin), unit_of(text)) +
         text.substr(part.value.end);
}

std::string without_part(const std::string& text, std::size_t at, std::size_t index) {
  const std::vector<Part> parts = parts_at(text, at);
  if (parts.size() == 1)
    return text.substr(0, at + 1) + text.substr(past_space(text, parts[0].whole.end));
  if (index + 1 < parts.size())
    return text.substr(0, parts[index].whole.begin) + text.substr(parts[index + 1].whole.begin);
  return text.substr(0, parts[index - 1].whole.end) + text.substr(parts[index].whole.end);
}

}  // namespace sbx::cli::mcp_install
