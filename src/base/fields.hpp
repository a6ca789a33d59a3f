#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"

/// A struct names its fields once; reading it, writing it and its JSON schema follow from that.
///
///     struct Call {
///       std::uint64_t number = 0;
///       AtMost<std::string, 63> name;
///       std::optional<int> status;
///     };
///     SBX_FIELDS(Call, number, name, status)
///
///     const Json json = write_fields(call, Form::document);
///     const Call call = SBX_TRY(read_fields<Call>(std::move(json)));
///
/// A field is a bool, a number, a chrono duration (its count), a string, an enum, a Json, a struct
/// with fields, a pair, a vector, a ByName, a std::optional (null where it is empty), an IfAny
/// (absent where it is empty), a Flat, or what write_described() and its kin say of a type. An enum
/// has the names that name_of(value) gives, for the values from 0 until the first empty name.
namespace sbx {

/// Names the members of an aggregate without bases, all of them and in order: one that is forgotten
/// does not compile. Stands in the struct's namespace, at namespace scope. A last underscore is not
/// part of a field's name: `stdout` and `errno` are macros.
#define SBX_FIELDS(Struct, ...)                                                           \
  template <class SbxSelf>                                                                \
    requires std::same_as<std::remove_const_t<SbxSelf>, Struct>                           \
  auto fields_of(SbxSelf& sbx_self) {                                                     \
    static constexpr auto kSbxPlaces =                                                    \
        ::sbx::fields::places_of<::sbx::fields::count_names(#__VA_ARGS__)>(#__VA_ARGS__); \
    auto& [__VA_ARGS__] = sbx_self;                                                       \
    return ::sbx::fields::tie(std::string_view(#__VA_ARGS__), kSbxPlaces, __VA_ARGS__);   \
  }
/// For a struct without members.
#define SBX_NO_FIELDS(Struct)                                   \
  template <class SbxSelf>                                      \
    requires std::same_as<std::remove_const_t<SbxSelf>, Struct> \
  std::tuple<> fields_of(SbxSelf& /*value*/) {                  \
    return {};                                                  \
  }
/// The string fields whose bytes matter where they are not UTF-8, such as paths: in a document,
/// NAME_b64 then has them.
#define SBX_EXACT(Struct, ...)                                   \
  constexpr std::string_view exact_of(const Struct& /*value*/) { \
    return #__VA_ARGS__;                                         \
  }

/// A string or a vector of bounded size. Reading enforces the bound, and the schema says it.
template <class Base, std::size_t kMost>
struct AtMost : Base {
  using Base::Base;
  AtMost() = default;
  AtMost(Base value) : Base(std::move(value)) {}  // NOLINT(google-explicit-constructor): it is one
};

/// Absent where it is empty, instead of null.
template <class Value>
struct IfAny : std::optional<Value> {
  using std::optional<Value>::optional;
  using std::optional<Value>::operator=;
  friend bool operator==(const IfAny& left, const IfAny& right) {
    return static_cast<const std::optional<Value>&>(left) ==
           static_cast<const std::optional<Value>&>(right);
  }
};

/// Its fields stand in the object itself, beside those of the struct that has it.
template <class Struct>
struct Flat : Struct {
  Flat() = default;
  Flat(Struct value)
      : Struct(std::move(value)) {}  // NOLINT(google-explicit-constructor): it is one
  friend auto fields_of(Flat& value) { return fields_of(static_cast<Struct&>(value)); }
  friend auto fields_of(const Flat& value) { return fields_of(static_cast<const Struct&>(value)); }
};

/// An object whose members have any names, in the order in which they came.
template <class Value, std::size_t kLongestName = std::numeric_limits<std::size_t>::max()>
struct ByName : std::vector<std::pair<std::string, Value>> {
  using std::vector<std::pair<std::string, Value>>::vector;
  static constexpr std::size_t kMostLetters = kLongestName;
  /// Null: nothing has that name.
  [[nodiscard]] const Value* find(std::string_view name) const {
    for (const auto& [key, value] : *this)
      if (key == name) return &value;
    return nullptr;
  }
};

/// Where JSON goes. Strings are bytes in both: a packet (CBOR) has those that are not UTF-8 as byte
/// strings; a document has a lossy string, and with SBX_EXACT the bytes in base64 beside it.
enum class Form : std::uint8_t { packet, document };

/// How to read, and what the error of a misread value is.
struct ReadAs {
  /// An absent member keeps its default; else it is an error. Unknown members are always ignored.
  bool absent_is_default = false;
  Form form = Form::packet;
  ErrorKind kind = ErrorKind::internal;
  std::string_view code = "bad-message";
  std::string_view subject = "the message";  ///< begins the error's text
};

template <class Struct>
concept HasFields = requires(Struct& value) { fields_of(value); };

namespace fields {

template <class Member>
struct Field {
  std::string_view name;
  Member& value;
};

consteval std::size_t count_names(std::string_view names) {
  std::size_t count = 1;
  for (const char letter : names) count += letter == ',' ? 1 : 0;
  return count;
}

/// Takes the first name of "a, b, c" off.
constexpr std::string_view next_name(std::string_view& names) {
  const std::size_t begin = names.find_first_not_of(", \n");
  names.remove_prefix(begin == std::string_view::npos ? names.size() : begin);
  const std::string_view name = names.substr(0, names.find_first_of(", \n"));
  names.remove_prefix(name.size());
  return name.substr(0, name.size() - (name.ends_with('_') ? 1 : 0));
}

constexpr bool has_name(std::string_view names, std::string_view name) {
  while (!names.empty())
    if (next_name(names) == name) return true;
  return false;
}

/// Where a name stands in "a, b, c". Numbers, not pointers: a start relocates those.
struct Place {
  std::uint16_t begin = 0;
  std::uint16_t length = 0;
};

template <std::size_t kCount>
consteval std::array<Place, kCount> places_of(std::string_view names) {
  std::array<Place, kCount> places{};
  std::string_view rest = names;
  for (Place& place : places) {
    const std::string_view name = next_name(rest);
    place = {.begin = static_cast<std::uint16_t>(name.data() - names.data()),
             .length = static_cast<std::uint16_t>(name.size())};
  }
  return places;
}

template <std::size_t kCount, class... Members>
auto tie(std::string_view names, const std::array<Place, kCount>& places, Members&... members) {
  static_assert(kCount == sizeof...(Members));
  const Place* next = places.data();
  const auto name = [&] {
    const Place& place = *next++;
    return names.substr(place.begin, place.length);
  };
  // Braces: in order.
  return std::tuple<Field<Members>...>{Field<Members>{name(), members}...};
}

/// Calls `visit` for each field.
template <HasFields Struct, class Visit>
void for_each(Struct& value, const Visit& visit) {
  std::apply([&](const auto&... each) { (visit(each), ...); }, fields_of(value));
}

template <HasFields Struct>
constexpr bool is_exact(const Struct& value, std::string_view name) {
  if constexpr (requires { exact_of(value); }) return has_name(exact_of(value), name);
  return false;
}

// ---- kinds of values ----

template <class>
inline constexpr std::size_t kMostOf = std::numeric_limits<std::size_t>::max();
template <class Base, std::size_t kMost>
inline constexpr std::size_t kMostOf<AtMost<Base, kMost>> = kMost;

template <class>
inline constexpr bool kIsIfAny = false;
template <class Value>
inline constexpr bool kIsIfAny<IfAny<Value>> = true;

template <class>
inline constexpr bool kIsFlat = false;
template <class Struct>
inline constexpr bool kIsFlat<Flat<Struct>> = true;

template <class Value>
concept Named = requires { Value::kMostLetters; };
template <class Value>
concept Maybe = requires(Value& value) {
  value.has_value();
  *value;
  value.reset();
};
template <class Value>
concept Text = std::derived_from<Value, std::string>;
template <class Value>
concept Duration = requires(Value value) {
  value.count();
  typename Value::period;
};
template <class Value>
concept List =
    requires(Value& value) { value.emplace_back(); } && !Text<Value> && !std::same_as<Value, Json>;
template <class Value>
concept Pair = requires(Value& value) {
  value.first;
  value.second;
};

/// A type that says itself how it is written, read and described, by functions in its namespace:
/// write_described(value, form), read_described(reader, json, value), describe_schema(value).
template <class Value>
concept Described = requires(const Value& value) { write_described(value, Form::packet); };

// ---- writing ----

[[nodiscard]] Json text_to_json(const std::string& text, Form form);
[[nodiscard]] std::string lossy(const std::string& name);
/// The exact bytes of a string, or of a vector of strings, under `name`_b64 where they are not
/// UTF-8.
void put_exact(Json& object, std::string_view name, const std::string& text);
void put_exact(Json& object, std::string_view name, const std::vector<std::string>& list);
inline void put_exact(Json& object, std::string_view name, const std::optional<std::string>& text) {
  if (text) put_exact(object, name, *text);
}

template <class Value>
[[nodiscard]] Json to_json(const Value& value, Form form);

template <HasFields Struct>
[[nodiscard]] Json object_of(const Struct& value, Form form) {
  Json object = Json::object();
  auto& members = object.get_ref<Json::object_t&>();
  for_each(value, [&](const auto& field) {
    using Member = std::remove_cvref_t<decltype(field.value)>;
    if constexpr (kIsIfAny<Member>)
      if (!field.value.has_value()) return;
    // A vector of pairs: no search for a name that is not there.
    if constexpr (kIsFlat<Member>) {
      Json inner = object_of(field.value, form);  // GCC 12 ends temporaries before a loop over them
      for (auto& each : inner.template get_ref<Json::object_t&>())
        members.push_back(std::move(each));
    } else {
      members.emplace_back(std::string(field.name), to_json(field.value, form));
    }
    if constexpr (requires { put_exact(object, field.name, field.value); })
      if (form == Form::document && is_exact(value, field.name))
        put_exact(object, field.name, field.value);
  });
  return object;
}

template <class Value>
Json to_json(const Value& value, Form form) {
  if constexpr (std::same_as<Value, Json>) {
    return value;
  } else if constexpr (Described<Value>) {
    return write_described(value, form);
  } else if constexpr (Text<Value>) {
    return text_to_json(value, form);
  } else if constexpr (Maybe<Value>) {
    return value.has_value() ? to_json(*value, form) : Json(nullptr);
  } else if constexpr (std::is_enum_v<Value>) {
    return name_of(value);
  } else if constexpr (std::is_arithmetic_v<Value>) {
    return value;
  } else if constexpr (Duration<Value>) {
    return value.count();
  } else if constexpr (HasFields<Value>) {
    return object_of(value, form);
  } else if constexpr (Named<Value>) {
    Json object = Json::object();
    for (const auto& [name, each] : value) object[lossy(name)] = to_json(each, form);
    return object;
  } else if constexpr (List<Value>) {
    Json list = Json::array();
    for (const auto& each : value) list.push_back(to_json(each, form));
    return list;
  } else {
    static_assert(Pair<Value>, "a field of a type that fields.hpp does not know");
    return Json::array({to_json(value.first, form), to_json(value.second, form)});
  }
}

// ---- reading ----

/// Reads one value; the error names the first member that is wrong.
class Reader {
 public:
  explicit Reader(const ReadAs& as) : as_(as) {}

  template <class Value>
  [[nodiscard]] bool read(Json& json, Value& value) {
    if constexpr (std::same_as<Value, Json>) {
      value = std::move(json);
      return true;
    } else if constexpr (Described<Value>) {
      return read_described(*this, json, value);
    } else if constexpr (Text<Value>) {
      return read_text(json, value, kMostOf<Value>);
    } else if constexpr (Maybe<Value>) {
      value.reset();
      return json.is_null() || read(json, value.emplace());
    } else if constexpr (std::same_as<Value, bool>) {
      if (!json.is_boolean()) return wrong("is not true or false");
      value = json.get<bool>();
      return true;
    } else if constexpr (std::is_enum_v<Value>) {
      return read_enum(json, value);
    } else if constexpr (std::floating_point<Value>) {
      if (!json.is_number()) return wrong("is not a number");
      value = json.get<Value>();
      return true;
    } else if constexpr (std::integral<Value>) {
      return read_integer(json, value);
    } else if constexpr (Duration<Value>) {
      typename Value::rep count{};
      if (!read(json, count)) return false;
      value = Value(count);
      return true;
    } else if constexpr (HasFields<Value>) {
      return read_struct(json, value);
    } else if constexpr (Named<Value>) {
      return read_named(json, value);
    } else if constexpr (List<Value>) {
      return read_list(json, value);
    } else {
      static_assert(Pair<Value>, "a field of a type that fields.hpp does not know");
      if (!json.is_array() || json.size() != 2) return wrong("is not a pair");
      return read(json[0], value.first) && read(json[1], value.second);
    }
  }

  /// Reads a member of `object`. `exact`: its bytes may stand beside it.
  template <class Value>
  [[nodiscard]] bool read_member(Json& object, std::string_view name, Value& value, bool must,
                                 bool exact) {
    if (!object.is_object()) return wrong("is not an object");
    Json* const found = find(object, name);
    if (found == nullptr)
      return as_.absent_is_default || !must || inside(name, wrong("is missing"));
    if (!read(*found, value)) return inside(name, false);
    if constexpr (requires { take_exact(object, name, value); })
      if (exact) take_exact(object, name, value);
    return true;
  }
  /// Says why what is being read is wrong. Returns false.
  [[nodiscard]] bool wrong(std::string why);
  /// False: an element or a member of what is being read is wrong.
  [[nodiscard]] bool inside(std::string_view name, bool right);
  [[nodiscard]] Error error() const;

 private:
  [[nodiscard]] bool read_text(Json& json, std::string& text, std::size_t most);
  [[nodiscard]] bool outside(std::int64_t least, std::uint64_t most);
  /// Takes the exact bytes that stand beside a member of a document.
  void take_exact(Json& object, std::string_view name, std::string& text) const;
  void take_exact(Json& object, std::string_view name, std::vector<std::string>& list) const;
  void take_exact(Json& object, std::string_view name, std::optional<std::string>& text) const {
    if (text) take_exact(object, name, *text);
  }
  [[nodiscard]] static Json* find(Json& object, std::string_view name);

  template <class Value>
  [[nodiscard]] bool read_integer(const Json& json, Value& value) {
    constexpr auto kLeast = static_cast<std::int64_t>(std::numeric_limits<Value>::min());
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<Value>::max());
    if (json.is_number_unsigned() && std::in_range<Value>(json.get<std::uint64_t>()))
      value = static_cast<Value>(json.get<std::uint64_t>());
    else if (json.is_number_integer() && !json.is_number_unsigned() &&
             std::in_range<Value>(json.get<std::int64_t>()))
      value = static_cast<Value>(json.get<std::int64_t>());
    else
      return outside(kLeast, kMost);
    return true;
  }

  template <class Value>
  [[nodiscard]] bool read_enum(const Json& json, Value& value) {
    if (json.is_string())
      for (int i = 0; *name_of(static_cast<Value>(i)) != '\0'; ++i)
        if (json.get_ref<const std::string&>() == name_of(static_cast<Value>(i))) {
          value = static_cast<Value>(i);
          return true;
        }
    return wrong("is none of its names");
  }

  template <class Value>
  [[nodiscard]] bool read_list(Json& json, Value& list) {
    if (!json.is_array()) return wrong("is not a list");
    if (json.size() > kMostOf<Value>)
      return wrong("has more than " + std::to_string(kMostOf<Value>) + " elements");
    list.clear();
    list.reserve(json.size());
    std::size_t at = 0;
    for (Json& each : json) {
      if (!read(each, list.emplace_back())) return inside(std::to_string(at), false);
      ++at;
    }
    return true;
  }

  template <class Value>
  [[nodiscard]] bool read_named(Json& json, Value& named) {
    if (!json.is_object()) return wrong("is not an object");
    if (json.size() > kMostOf<Value>)
      return wrong("has more than " + std::to_string(kMostOf<Value>) + " members");
    named.clear();
    for (auto& [name, each] : json.get_ref<Json::object_t&>()) {
      if (name.size() > Value::kMostLetters)
        return wrong("has a name of more than " + std::to_string(Value::kMostLetters) + " bytes");
      if (!read(each, named.emplace_back(name, typename Value::value_type::second_type()).second))
        return inside(name, false);
    }
    return true;
  }

  template <HasFields Struct>
  [[nodiscard]] bool read_struct(Json& json, Struct& value) {
    if (!json.is_object()) return wrong("is not an object");
    bool right = true;
    for_each(value, [&](const auto& field) {
      using Member = std::remove_cvref_t<decltype(field.value)>;
      if constexpr (kIsFlat<Member>)
        right = right && read_struct(json, field.value);
      else
        right = right && read_member(json, field.name, field.value, !Maybe<Member>,
                                     as_.form == Form::document && is_exact(value, field.name));
    });
    return right;
  }

  const ReadAs& as_;
  std::string member_;  ///< "calls.2.name"; empty: the whole
  std::string why_;
};

// ---- the schema ----

[[nodiscard]] Json object_schema(Json properties, Json required);
[[nodiscard]] Json integer_schema(std::int64_t least, std::uint64_t most);
/// Null is allowed too.
[[nodiscard]] Json or_null(Json schema);
[[nodiscard]] Json exact_schema(bool is_list);

template <class Value>
[[nodiscard]] Json schema_of_value();

template <HasFields Struct>
[[nodiscard]] Json schema_of_struct() {
  Json properties = Json::object();
  Json required = Json::array();
  const Struct value{};
  for_each(value, [&](const auto& field) {
    using Member = std::remove_cvref_t<decltype(field.value)>;
    if constexpr (kIsFlat<Member>) {
      const Json inner = schema_of_struct<Member>();
      properties.update(inner["properties"]);
      if (inner.contains("required"))
        for (const Json& each : inner["required"]) required.push_back(each);
      return;
    }
    const std::string name(field.name);
    properties[name] = schema_of_value<Member>();
    if constexpr (!kIsIfAny<Member>) required.push_back(name);
    constexpr bool kIsList = std::same_as<Member, std::vector<std::string>>;
    if constexpr (Text<Member> || kIsList || std::derived_from<Member, std::optional<std::string>>)
      if (is_exact(value, name)) properties[name + "_b64"] = exact_schema(kIsList);
  });
  return object_schema(std::move(properties), std::move(required));
}

template <class Value>
Json schema_of_value() {
  constexpr std::size_t kMost = kMostOf<Value>;
  constexpr bool kHasMost = kMost != std::numeric_limits<std::size_t>::max();
  if constexpr (std::same_as<Value, Json>) {
    return Json::object();
  } else if constexpr (Described<Value>) {
    return describe_schema(Value{});
  } else if constexpr (Text<Value>) {
    Json schema{{"type", "string"}};
    if (kHasMost) schema["maxLength"] = kMost;
    return schema;
  } else if constexpr (kIsIfAny<Value>) {
    return schema_of_value<typename Value::value_type>();
  } else if constexpr (Maybe<Value>) {
    return or_null(schema_of_value<typename Value::value_type>());
  } else if constexpr (std::same_as<Value, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::is_enum_v<Value>) {
    Json names = Json::array();
    for (int i = 0; *name_of(static_cast<Value>(i)) != '\0'; ++i)
      names.push_back(name_of(static_cast<Value>(i)));
    return {{"enum", std::move(names)}};
  } else if constexpr (std::floating_point<Value>) {
    return {{"type", "number"}};
  } else if constexpr (std::integral<Value>) {
    return integer_schema(static_cast<std::int64_t>(std::numeric_limits<Value>::min()),
                          static_cast<std::uint64_t>(std::numeric_limits<Value>::max()));
  } else if constexpr (Duration<Value>) {
    return schema_of_value<typename Value::rep>();
  } else if constexpr (HasFields<Value>) {
    return schema_of_struct<Value>();
  } else if constexpr (Named<Value>) {
    Json schema{
        {"type", "object"},
        {"additionalProperties", schema_of_value<typename Value::value_type::second_type>()}};
    if (Value::kMostLetters != std::numeric_limits<std::size_t>::max())
      schema["propertyNames"] = {{"maxLength", Value::kMostLetters}};
    if (kHasMost) schema["maxProperties"] = kMost;
    return schema;
  } else if constexpr (List<Value>) {
    Json schema{{"type", "array"}, {"items", schema_of_value<typename Value::value_type>()}};
    if (kHasMost) schema["maxItems"] = kMost;
    return schema;
  } else {
    static_assert(Pair<Value>, "a field of a type that fields.hpp does not know");
    return {{"type", "array"},
            {"prefixItems",
             {schema_of_value<typename Value::first_type>(),
              schema_of_value<typename Value::second_type>()}},
            {"minItems", 2},
            {"maxItems", 2}};
  }
}

}  // namespace fields

template <HasFields Struct>
[[nodiscard]] Json write_fields(const Struct& value, Form form = Form::packet) {
  return fields::object_of(value, form);
}

/// A list alone.
template <class Value>
[[nodiscard]] Json write_list(const std::vector<Value>& list, Form form = Form::packet) {
  return fields::to_json(list, form);
}

/// Errors: as `as` says; the text names the member: the message: "calls.2.name" is missing.
template <HasFields Struct>
[[nodiscard]] Result<Struct> read_fields(Json json, const ReadAs& as = {}) {
  fields::Reader reader(as);
  Result<Struct> value{Struct{}};
  if (!reader.read(json, *value)) return fail(reader.error());
  return value;
}

/// JSON Schema (draft 2020-12) of its documents. Other members may be added later.
template <HasFields Struct>
[[nodiscard]] Json schema_of() {
  return fields::schema_of_struct<Struct>();
}

}  // namespace sbx
