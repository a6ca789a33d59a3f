#include "protocol/entries.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace sbx::protocol {

void EntryWriter::mode(const char* key, unsigned value) {
  json_[key] = fmt::format("{:04o}", value);
}

void EntryWriter::names(const char* key, const std::vector<std::string>& value) {
  json_[key] = fields::to_json(value, form_);
  if (form_ == Form::document) fields::put_exact(json_, key, value);
}

void EntryReader::mode(const char* key, unsigned& value) {
  std::string digits;
  take(key, digits);
  if (!right_) return;
  constexpr std::size_t kMost = 5;
  const auto is_octal = [](char digit) { return digit >= '0' && digit <= '7'; };
  if (digits.empty() || digits.size() > kMost || !std::ranges::all_of(digits, is_octal))
    return refuse(key, "is not an octal mode");
  value = static_cast<unsigned>(std::strtoul(digits.c_str(), nullptr, 8));
}

void EntryReader::refuse(const char* key, const std::string& why) {
  right_ = reader_.inside(key, reader_.wrong(why));
}

void EntrySchema::add(const char* key, Json schema, bool must) {
  properties_[key] = std::move(schema);
  if (must) required_.push_back(key);
}

void EntrySchema::name(const char* key, const std::string& value) {
  add_as(key, value);
  add((std::string(key) + "_b64").c_str(), fields::exact_schema(false), false);
}

void EntrySchema::names(const char* key, const std::vector<std::string>& value, bool must) {
  add_as(key, value, must);
  add((std::string(key) + "_b64").c_str(), fields::exact_schema(true), false);
}

void EntrySchema::mode(const char* key, unsigned /*value*/) {
  add(key, {{"type", "string"}, {"pattern", "^[0-7]{4,5}$"}});
}

}  // namespace sbx::protocol
