#include "session/json.hpp"

#include "base/text.hpp"

namespace sbx::session {

const Json& part(const Json& object, const char* key) {
  static const Json none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string text_of(const Json& element) {
  return element.is_string() ? element.get<std::string>() : std::string();
}

Json headed(const Json& body) {
  Json json{{"schema", "sbx.session/1"}, {"sbx", SBX_VERSION}};
  json.update(body);
  return json;
}

}  // namespace sbx::session
