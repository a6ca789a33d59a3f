#include "base/json_read.hpp"

#include <string>
#include <utility>
#include <vector>

namespace sbx {
namespace {

/// Builds the value while the library reads. False ends the reading.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(JsonLimits limits) : limits_(limits) {}

  [[nodiscard]] Json take() { return std::move(root_); }

  bool null() override { return put(nullptr) != nullptr; }
  bool boolean(bool value) override { return put(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return put(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return put(value) != nullptr; }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return put(value) != nullptr;
  }
  bool string(string_t& value) override { return put(std::move(value)) != nullptr; }
  bool binary(binary_t& value) override { return put(std::move(value)) != nullptr; }

  bool start_object(std::size_t /*size*/) override { return open(Json::object()); }
  bool start_array(std::size_t /*size*/) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (++values_ > limits_.values) return false;
    // A vector of pairs: added without a search for the name.
    auto& members = open_.back()->get_ref<Json::object_t&>();
    named_ = &members.emplace_back(std::move(name), nullptr).second;
    return true;
  }

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  /// Null: beyond the limits.
  Json* put(Json value) {
    if (++values_ > limits_.values) return nullptr;
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (!open_.back()->is_array()) {
      *named_ = std::move(value);
      return named_;
    }
    open_.back()->push_back(std::move(value));
    return &open_.back()->back();
  }

  bool open(Json empty) {
    if (open_.size() >= limits_.depth) return false;
    Json* const added = put(std::move(empty));
    if (added == nullptr) return false;
    open_.push_back(added);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  JsonLimits limits_;
  std::size_t values_ = 0;
  Json root_;
  std::vector<Json*> open_;  ///< containers whose end has not come; only the last one grows
  Json* named_ = nullptr;    ///< the member whose name has been read
};

Json read(std::string_view bytes, JsonLimits limits, Json::input_format_t format) {
  Builder builder(limits);
  if (!Json::sax_parse(bytes, &builder, format)) return Json(Json::value_t::discarded);
  return builder.take();
}

}  // namespace

Json read_json(std::string_view text, JsonLimits limits) {
  return read(text, limits, Json::input_format_t::json);
}

Json read_cbor(std::string_view bytes, JsonLimits limits) {
  return read(bytes, limits, Json::input_format_t::cbor);
}

}  // namespace sbx
