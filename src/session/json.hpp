#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fields.hpp"
#include "base/json.hpp"

/// Parts of messages, and what `sbx session` prints with --json.
namespace sbx::session {

/// A member of a message, whose sender may be no sbx: `otherwise` where it is absent, of another
/// type or out of range.
template <class Value>
[[nodiscard]] Value member_or(const Json& object, const char* key, Value otherwise) {
  const auto found = object.find(key);
  if (found == object.end()) return otherwise;
  if constexpr (std::same_as<Value, bool>) {
    return found->is_boolean() ? found->template get<bool>() : otherwise;
  } else if constexpr (std::floating_point<Value>) {
    return found->is_number() ? found->template get<Value>() : otherwise;
  } else if constexpr (std::integral<Value>) {
    if (found->is_number_unsigned()) {
      const auto number = found->template get<std::uint64_t>();
      return std::in_range<Value>(number) ? static_cast<Value>(number) : otherwise;
    }
    if (!found->is_number_integer()) return otherwise;
    const auto number = found->template get<std::int64_t>();
    return std::in_range<Value>(number) ? static_cast<Value>(number) : otherwise;
  } else {
    static_assert(std::same_as<Value, std::string>);
    return found->is_string() ? found->template get<std::string>() : std::move(otherwise);
  }
}
[[nodiscard]] inline std::string member_or(const Json& object, const char* key,
                                           const char* otherwise) {
  return member_or(object, key, std::string(otherwise));
}

/// A member that holds others; null where it is absent, or the object is none.
[[nodiscard]] const Json& part(const Json& object, const char* key);
/// It would be gone in the first turn of a loop over it: GCC 12 ends temporaries of a range-based
/// for before the loop.
const Json& part(const Json&& object, const char* key) = delete;
/// The text of an element; empty where it is none.
[[nodiscard]] std::string text_of(const Json& element);

/// An answer of schema "sbx.session/1" with these members.
[[nodiscard]] Json headed(const Json& body);
template <HasFields Facts>
[[nodiscard]] Json headed(const Facts& facts) {
  return headed(write_fields(facts, Form::document));
}

}  // namespace sbx::session
