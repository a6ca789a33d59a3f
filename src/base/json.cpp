#include "base/json.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "base/text.hpp"

template class nlohmann::basic_json<nlohmann::ordered_map>;

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

namespace {

/// DEL, C1 controls, and marks that reorder or divide lines: a terminal obeys them, and a program
/// may have written them.
bool is_for_terminals(std::uint32_t letter) {
  const auto within = [letter](std::uint32_t first, std::uint32_t last) {
    return letter >= first && letter <= last;
  };
  return within(0x7F, 0x9F) || letter == 0x61C || within(0x200E, 0x200F) ||
         within(0x2028, 0x202E) || within(0x2066, 0x2069);
}

/// Their escapes instead: the same value to whoever reads JSON. They stand in strings only, in
/// UTF-8 of at most three bytes.
std::string escaped(std::string text) {
  if (text.find_first_of("\x7F\xC2\xD8\xE2") == std::string::npos) return text;
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[i + at]); };
    const unsigned lead = byte(0);
    const std::size_t size = lead == 0x7F                   ? 1
                             : lead == 0xC2 || lead == 0xD8 ? 2
                             : lead == 0xE2                 ? 3
                                                            : 0;
    std::uint32_t letter = 0;
    if (size == 1) letter = lead;
    if (size == 2) letter = (lead & 0x1FU) << 6U | (byte(1) & 0x3FU);
    if (size == 3) letter = (lead & 0x0FU) << 12U | (byte(1) & 0x3FU) << 6U | (byte(2) & 0x3FU);
    if (!is_for_terminals(letter)) {
      safe += text[i++];
      continue;
    }
    char escape[sizeof "\\u0000"];
    (void)std::snprintf(escape, sizeof escape, "\\u%04x", letter);
    safe += escape;
    i += size;
  }
  return safe;
}

}  // namespace

std::string dump(const Json& json) {
  return escaped(json.dump(-1, ' ', false, Json::error_handler_t::replace)) + "\n";
}

std::string pretty(const Json& json) {
  return escaped(json.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
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
