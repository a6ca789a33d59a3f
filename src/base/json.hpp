#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <sbx/error.hpp>

// Compiled once, in json.cpp: compiled in every file, its members take a quarter of the build.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

/// JSON as sbx writes it: fields in the order in which they are added, always valid UTF-8.
namespace sbx {

using Json = nlohmann::ordered_json;

/// Names are bytes; JSON is UTF-8: lossy under `key`, exact under `key`_b64 where they differ.
void put_name(Json& object, const std::string& key, const std::string& bytes);
void put_names(Json& object, const std::string& key, const std::vector<std::string>& list);

/// One line and a newline.
[[nodiscard]] std::string dump(const Json& json);
/// The same for people and editors: indented.
[[nodiscard]] std::string pretty(const Json& json);
/// Where a value comes from: file, line, column and layer.
[[nodiscard]] Json origin_json(const Origin& origin);

}  // namespace sbx
