#include "base/fields.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace sbx::fields {

Json text_to_json(const std::string& text, Form form) {
  if (is_utf8(text)) return text;
  if (form == Form::document) return lossy_utf8(text);
  return Json::binary(std::vector<std::uint8_t>(text.begin(), text.end()));
}

std::string lossy(const std::string& name) {
  return lossy_utf8(name);
}

void put_exact(Json& object, std::string_view name, const std::string& text) {
  if (!is_utf8(text)) object[std::string(name) + "_b64"] = base64(text);
}

void put_exact(Json& object, std::string_view name, const std::vector<std::string>& list) {
  if (std::ranges::all_of(list, [](const std::string& each) { return is_utf8(each); })) return;
  Json exact = Json::array();
  for (const std::string& each : list) exact.push_back(base64(each));
  object[std::string(name) + "_b64"] = std::move(exact);
}

Error Reader::error() const {
  return {.kind = as_.kind,
          .code = std::string(as_.code),
          .message = std::string(as_.subject) + ": " +
                     (member_.empty() ? "it" : "\"" + member_ + "\"") + " " + why_};
}

bool Reader::wrong(std::string why) {
  why_ = std::move(why);
  return false;
}

bool Reader::inside(std::string_view name, bool right) {
  if (!right) member_ = std::string(name) + (member_.empty() ? "" : ".") + member_;
  return right;
}

bool Reader::outside(std::int64_t least, std::uint64_t most) {
  return wrong("is not a whole number from " + std::to_string(least) + " to " +
               std::to_string(most));
}

bool Reader::read_text(Json& json, std::string& text, std::size_t most) {
  if (json.is_string()) {
    text = std::move(json.get_ref<std::string&>());
  } else if (json.is_binary()) {
    const auto& bytes = json.get_binary();
    text.assign(bytes.begin(), bytes.end());
  } else {
    return wrong("is not a string");
  }
  return text.size() <= most || wrong("has more than " + std::to_string(most) + " bytes");
}

Json* Reader::find(Json& object, std::string_view name) {
  auto& members = object.get_ref<Json::object_t&>();
  const auto found =
      std::ranges::find_if(members, [name](const auto& each) { return each.first == name; });
  return found == members.end() ? nullptr : &found->second;
}

void Reader::take_exact(Json& object, std::string_view name, std::string& text) const {
  const Json* const exact = find(object, std::string(name) + "_b64");
  if (exact == nullptr || !exact->is_string()) return;
  if (auto bytes = base64_bytes(exact->get_ref<const std::string&>())) text = std::move(*bytes);
}

void Reader::take_exact(Json& object, std::string_view name, std::vector<std::string>& list) const {
  const Json* const exact = find(object, std::string(name) + "_b64");
  if (exact == nullptr || !exact->is_array() || exact->size() != list.size()) return;
  for (std::size_t i = 0; i < list.size(); ++i)
    if ((*exact)[i].is_string())
      if (auto bytes = base64_bytes((*exact)[i].get_ref<const std::string&>()))
        list[i] = std::move(*bytes);
}

Json object_schema(Json properties, Json required) {
  Json schema{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

Json integer_schema(std::int64_t least, std::uint64_t most) {
  Json schema{{"type", "integer"}};
  // A 64-bit bound is that of the type, and no reader of JSON needs it.
  if (least > std::numeric_limits<std::int64_t>::min()) schema["minimum"] = least;
  if (most < static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    schema["maximum"] = most;
  return schema;
}

Json or_null(Json schema) {
  if (schema.contains("enum")) {
    schema["enum"].push_back(nullptr);
    return schema;
  }
  const auto type = schema.find("type");
  if (type != schema.end()) *type = Json::array({*type, "null"});
  return schema;
}

Json exact_schema(bool is_list) {
  const Json text{{"type", "string"}, {"contentEncoding", "base64"}};
  if (!is_list) return text;
  return {{"type", "array"}, {"items", text}};
}

}  // namespace sbx::fields
