#include "protocol/schema.hpp"

#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "protocol/packet.hpp"
#include "protocol/requests.hpp"

namespace sbx::protocol {
namespace {

constexpr const char* kSchema = "sbx.packet/2";

/// The answer where there is an error.
struct ErrorAnswer {
  ErrorFields error;
};
SBX_FIELDS(ErrorAnswer, error)

/// Without its namespace.
template <class Type>
consteval std::string_view name_of_type() {
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("Type = ") + 7);
  name = name.substr(0, name.find_first_of(";]"));
  return name.substr(name.rfind(':') + 1);
}

template <class Asked>
Operation operation_of() {
  Operation facts{.op = Asked::kOp,
                  .meaning = Asked::kMeaning,
                  .request = name_of_type<Asked>(),
                  .answer = name_of_type<typename Asked::Answer>()};
  if constexpr (requires { Asked::kDescriptors; }) facts.descriptors = Asked::kDescriptors;
  if constexpr (Begins<Asked>) facts.begun = name_of_type<typename Asked::Begun>();
  if constexpr (requires { typename Asked::Event; })
    facts.event = name_of_type<typename Asked::Event>();
  if constexpr (requires { typename Asked::Later; })
    facts.later = name_of_type<typename Asked::Later>();
  return facts;
}

/// Calls `visit` with one of each request.
template <class Visit, std::size_t... kAt>
void for_each_request(const Visit& visit, std::index_sequence<kAt...> /*all*/) {
  (visit(std::variant_alternative_t<kAt, Request>{}), ...);
}
template <class Visit>
void for_each_request(const Visit& visit) {
  for_each_request(visit, std::make_index_sequence<std::variant_size_v<Request>>());
}

/// A packet has the bytes of a string itself, and not in base64 beside it.
void drop_exact(Json& schema) {
  if (const auto items = schema.find("items"); items != schema.end()) drop_exact(*items);
  const auto properties = schema.find("properties");
  if (properties == schema.end()) return;
  Json kept = Json::object();
  for (auto& [name, member] : properties->items()) {
    if (name.ends_with("_b64")) continue;
    drop_exact(member);
    kept[name] = std::move(member);
  }
  *properties = std::move(kept);
}

template <class Said>
void define(Json& definitions) {
  definitions[std::string(name_of_type<Said>())] = schema_of<Said>();
}

template <class Asked>
Json request_schema() {
  Json schema = schema_of<Asked>();
  Json properties{{"op", {{"const", Asked::kOp}}}};
  properties.update(schema["properties"]);
  Json required = Json::array({"op"});
  if (schema.contains("required"))
    for (const Json& each : schema["required"]) required.push_back(each);
  return {{"description", Asked::kMeaning},
          {"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)}};
}

Json table_entry(const Operation& each) {
  Json entry{{"request", each.request}};
  for (const auto& [name, value] :
       {std::pair("descriptors", each.descriptors), std::pair("begun", each.begun),
        std::pair("event", each.event), std::pair("later", each.later)})
    if (!value.empty()) entry[name] = value;
  entry["answer"] = each.answer;
  return entry;
}

}  // namespace

std::vector<Operation> operations() {
  std::vector<Operation> all;
  for_each_request([&]<class Asked>(const Asked&) { all.push_back(operation_of<Asked>()); });
  return all;
}

Json packet_schema() {
  Json requests = Json::object();
  Json answers = Json::object();
  for_each_request([&]<class Asked>(const Asked&) {
    requests[std::string(name_of_type<Asked>())] = request_schema<Asked>();
    define<typename Asked::Answer>(answers);
    if constexpr (Begins<Asked>) define<typename Asked::Begun>(answers);
    if constexpr (requires { typename Asked::Event; }) define<typename Asked::Event>(answers);
    if constexpr (requires { typename Asked::Later; }) define<typename Asked::Later>(answers);
  });
  define<ErrorAnswer>(answers);
  Json table = Json::object();
  for (const Operation& each : operations()) table[std::string(each.op)] = table_entry(each);
  requests.update(answers);
  for (auto& [name, schema] : requests.items()) drop_exact(schema);
  Json any = Json::array();
  for (const auto& [name, schema] : requests.items()) any.push_back({{"$ref", "#/$defs/" + name}});
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"title", kSchema},
          {"description",
           "What a session and its clients say to each other, sbx-packet(5): CBOR, in which a "
           "string that is not UTF-8 is a byte string. Other members are ignored."},
          {"operations", std::move(table)},
          {"anyOf", std::move(any)},
          {"$defs", std::move(requests)}};
}

}  // namespace sbx::protocol
