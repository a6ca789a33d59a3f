#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <sbx/outcome.hpp>

/// Members of a record. It is untrusted input: a member that is missing or of another type has its
/// default.
namespace sbx::lib {

using Json = nlohmann::json;

[[nodiscard]] const Json& part(const Json& object, const char* key);
[[nodiscard]] std::optional<std::uint64_t> number(const Json& object, const char* key);
[[nodiscard]] std::uint64_t count(const Json& object, const char* key);
[[nodiscard]] int small(const Json& object, const char* key);
[[nodiscard]] bool flag(const Json& object, const char* key);
[[nodiscard]] std::string plain(const Json& object, const char* key);
/// A name that is not UTF-8 has its bytes in base64 beside the text.
[[nodiscard]] std::string name(const Json& object, const std::string& key);
[[nodiscard]] Stream stream_of(const Json& json);

}  // namespace sbx::lib
