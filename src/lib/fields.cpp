#include "lib/fields.hpp"

#include "lib/members.hpp"

namespace sbx::lib {

const Json& part(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

std::optional<std::uint64_t> number(const Json& object, const char* key) {
  const Json& value = part(object, key);
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<std::uint64_t>();
}

std::uint64_t count(const Json& object, const char* key) {
  return number(object, key).value_or(0);
}

int small(const Json& object, const char* key) {
  return static_cast<int>(count(object, key));
}

bool flag(const Json& object, const char* key) {
  const Json& value = part(object, key);
  return value.is_boolean() && value.get<bool>();
}

std::string plain(const Json& object, const char* key) {
  const Json& value = part(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::string name(const Json& object, const std::string& key) {
  const std::string exact = plain(object, (key + "_b64").c_str());
  return exact.empty() ? plain(object, key.c_str()) : from_base64(exact);
}

Stream stream_of(const Json& json) {
  Stream stream{.bytes = count(json, "bytes"),
                .truncated = flag(json, "truncated"),
                .head_bytes = count(json, "head_bytes"),
                .tail_bytes = count(json, "tail_bytes"),
                .joined = flag(json, "joined")};
  if (part(json, "text").is_string())
    stream.text = plain(json, "encoding") == "base64" ? from_base64(plain(json, "text"))
                                                      : plain(json, "text");
  return stream;
}

}  // namespace sbx::lib
