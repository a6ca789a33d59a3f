#include "base/json.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace sbx {
namespace {

const char* layer_name(Layer layer) {
  switch (layer) {
    case Layer::key_default:
      return "default";
    case Layer::builtin:
      return "built-in";
    case Layer::file:
      return "file";
    case Layer::command_line:
      return "command-line";
  }
  return "default";
}

}  // namespace

void put_name(Json& object, const std::string& key, const std::string& bytes) {
  if (is_utf8(bytes)) {
    object[key] = bytes;
    return;
  }
  object[key] = lossy_utf8(bytes);
  object[key + "_b64"] = base64(bytes);
}

void put_names(Json& object, const std::string& key, const std::vector<std::string>& list) {
  Json names = Json::array();
  Json exact = Json::array();
  for (const std::string& name : list) {
    names.push_back(lossy_utf8(name));
    exact.push_back(base64(name));
  }
  object[key] = std::move(names);
  if (!std::all_of(list.begin(), list.end(), [](const std::string& name) { return is_utf8(name); }))
    object[key + "_b64"] = std::move(exact);
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string pretty(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json origin_json(const Origin& origin) {
  Json json;
  json["layer"] = layer_name(origin.layer);
  if (!origin.file.empty()) put_name(json, "file", origin.file);
  if (origin.line > 0) json["line"] = origin.line;
  if (origin.column > 0) json["column"] = origin.column;
  return json;
}

}  // namespace sbx
