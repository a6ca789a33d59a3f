#pragma once

#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/fields.hpp"
#include "base/json.hpp"
#include "lib/members.hpp"

/// What lib/members.hpp describes, as a field of messages and documents (base/fields.hpp), and
/// strictly read: a member that is missing or of another type is an error.
namespace sbx::protocol {

/// Writes one entry.
class EntryWriter {
 public:
  static constexpr bool kReads = false;
  explicit EntryWriter(Form form) : form_(form) {}

  template <class Enum, class Name>
  void word(const char* key, Enum value, Name name_of_value) {
    json_[key] = name_of_value(value);
  }
  void name(const char* key, const std::string& value) {
    text(key, value);
    if (form_ == Form::document) fields::put_exact(json_, key, value);
  }
  void text(const char* key, const std::string& value) {
    json_[key] = fields::text_to_json(value, form_);
  }
  void text_or_null(const char* key, const std::string& value) {
    if (value.empty())
      json_[key] = nullptr;
    else
      text(key, value);
  }
  void count(const char* key, std::uint64_t value) { json_[key] = value; }
  void count(const char* key, const std::optional<std::uint64_t>& value) {
    json_[key] = value ? Json(*value) : Json(nullptr);
  }
  void flag(const char* key, bool value) { json_[key] = value; }
  void flag_if_set(const char* key, bool value) {
    if (value) json_[key] = true;
  }
  void mode(const char* key, unsigned value);
  void names(const char* key, const std::vector<std::string>& value);
  void names_if_set(const char* key, const std::vector<std::string>& value) {
    if (!value.empty()) names(key, value);
  }
  [[nodiscard]] Json take() { return std::move(json_); }

 private:
  Form form_;
  Json json_ = Json::object();
};

/// Reads one entry, until a member is wrong.
class EntryReader {
 public:
  static constexpr bool kReads = true;
  EntryReader(fields::Reader& reader, Json& object) : reader_(reader), object_(object) {}

  template <class Enum, class Name>
  void word(const char* key, Enum& value, Name name_of_value) {
    std::string given;
    take(key, given);
    if (!right_) return;
    for (unsigned char i = 0; *name_of_value(static_cast<Enum>(i)) != '\0'; ++i)
      if (given == name_of_value(static_cast<Enum>(i))) {
        value = static_cast<Enum>(i);
        return;
      }
    refuse(key, "is none of its names");
  }
  void name(const char* key, std::string& value) { take(key, value, true, true); }
  void text(const char* key, std::string& value) { take(key, value); }
  void text_or_null(const char* key, std::string& value) {
    std::optional<std::string> given;
    take(key, given);
    value = std::move(given).value_or("");
  }
  template <class Number>
  void count(const char* key, Number& value) {
    take(key, value);
  }
  void flag(const char* key, bool& value) { take(key, value); }
  void flag_if_set(const char* key, bool& value) { take(key, value, false); }
  void mode(const char* key, unsigned& value);
  void names(const char* key, std::vector<std::string>& value) { take(key, value, true, true); }
  void names_if_set(const char* key, std::vector<std::string>& value) {
    take(key, value, false, true);
  }
  [[nodiscard]] bool is_right() const { return right_; }

 private:
  template <class Value>
  void take(const char* key, Value& value, bool must = true, bool exact = false) {
    right_ = right_ && reader_.read_member(object_, key, value, must, exact);
  }
  void refuse(const char* key, const std::string& why);

  fields::Reader& reader_;
  Json& object_;
  bool right_ = true;
};

/// Makes the JSON schema of an entry.
class EntrySchema {
 public:
  static constexpr bool kReads = false;

  template <class Enum, class Name>
  void word(const char* key, Enum /*value*/, Name name_of_value) {
    Json names = Json::array();
    for (unsigned char i = 0; *name_of_value(static_cast<Enum>(i)) != '\0'; ++i)
      names.push_back(name_of_value(static_cast<Enum>(i)));
    add(key, {{"enum", std::move(names)}});
  }
  void name(const char* key, const std::string& value);
  void text(const char* key, const std::string& value) { add_as(key, value); }
  void text_or_null(const char* key, const std::string& value) {
    add_as(key, std::optional<std::string>(value));
  }
  template <class Number>
  void count(const char* key, const Number& value) {
    add_as(key, value);
  }
  void flag(const char* key, bool value) { add_as(key, value); }
  void flag_if_set(const char* key, bool value) { add_as(key, value, false); }
  void mode(const char* key, unsigned value);
  void names(const char* key, const std::vector<std::string>& value, bool must = true);
  void names_if_set(const char* key, const std::vector<std::string>& value) {
    names(key, value, false);
  }
  [[nodiscard]] Json take() {
    return fields::object_schema(std::move(properties_), std::move(required_));
  }

 private:
  void add(const char* key, Json schema, bool must = true);
  template <class Value>
  void add_as(const char* key, const Value& /*value*/, bool must = true) {
    add(key, fields::schema_of_value<Value>(), must);
  }

  Json properties_ = Json::object();
  Json required_ = Json::array();
};

using lib::describe;
template <class Value>
concept IsEntry = std::is_class_v<Value> &&
                  requires(EntryWriter& members, Value& value) { describe(members, value); };

template <IsEntry Entry>
[[nodiscard]] Json write_entry(Entry entry, Form form = Form::document) {
  EntryWriter writer(form);
  describe(writer, entry);
  return writer.take();
}

}  // namespace sbx::protocol

/// In the namespace of the entries: fields.hpp finds them there.
namespace sbx {

template <protocol::IsEntry Entry>
[[nodiscard]] Json write_described(const Entry& entry, Form form) {
  return protocol::write_entry(entry, form);
}
template <protocol::IsEntry Entry>
[[nodiscard]] bool read_described(fields::Reader& reader, Json& json, Entry& entry) {
  protocol::EntryReader members(reader, json);
  using lib::describe;
  describe(members, entry);
  return members.is_right();
}
template <protocol::IsEntry Entry>
[[nodiscard]] Json describe_schema(Entry entry) {
  protocol::EntrySchema schema;
  using lib::describe;
  describe(schema, entry);
  return schema.take();
}

}  // namespace sbx
