#pragma once

#include <string>
#include <string_view>

namespace sbx {

/// Whether a quantity that `parse` does not take would be one if its number had fewer digits.
template <class Parse>
bool is_too_large(std::string_view text, Parse parse) {
  const auto unit = text.find_first_not_of("0123456789");
  return unit != 0 && unit != std::string_view::npos &&
         parse("1" + std::string(text.substr(unit))).has_value();
}

}  // namespace sbx
