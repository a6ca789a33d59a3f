#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "lib/members.hpp"

namespace sbx::record {

/// Writes one object as lib/members.hpp describes it.
class MemberWriter {
 public:
  static constexpr bool kReads = false;

  template <class Enum, class Name>
  void word(const char* key, Enum value, Name name_of_value) {
    json_[key] = name_of_value(value);
  }
  void name(const char* key, const std::string& value) { put_name(json_, key, value); }
  void text(const char* key, const std::string& value) { json_[key] = value; }
  void text_or_null(const char* key, const std::string& value) {
    json_[key] = value.empty() ? Json(nullptr) : Json(value);
  }
  void count(const char* key, std::uint64_t value) { json_[key] = value; }
  void count(const char* key, const std::optional<std::uint64_t>& value) {
    json_[key] = value ? Json(*value) : Json(nullptr);
  }
  void flag(const char* key, bool value) { json_[key] = value; }
  void flag_if_set(const char* key, bool value) {
    if (value) json_[key] = true;
  }
  void names(const char* key, const std::vector<std::string>& value) {
    put_names(json_, key, value);
  }
  void names_if_set(const char* key, const std::vector<std::string>& value) {
    if (!value.empty()) put_names(json_, key, value);
  }
  [[nodiscard]] Json take() { return std::move(json_); }

 private:
  Json json_;
};

template <class Entry>
[[nodiscard]] Json members_json(Entry entry) {
  MemberWriter writer;
  lib::describe(writer, entry);
  return writer.take();
}

template <class Entry>
[[nodiscard]] Json list_json(const std::vector<Entry>& entries) {
  Json list = Json::array();
  for (const Entry& each : entries) list.push_back(members_json(each));
  return list;
}

}  // namespace sbx::record
