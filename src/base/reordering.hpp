#pragma once

#include <string_view>

namespace sbx {

/// True when the text begins with a character that changes the order in which the characters around
/// it are shown, in UTF-8: U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069 (Unicode
/// Standard Annex 9, "Directional Formatting Characters").
[[nodiscard]] constexpr bool begins_with_reordering(std::string_view text) {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  };
  if (byte(0) == 0xd8) return byte(1) == 0x9c;
  if (byte(0) != 0xe2) return false;
  const unsigned last = byte(2);
  if (byte(1) == 0x80) return last == 0x8e || last == 0x8f || (last >= 0xaa && last <= 0xae);
  return byte(1) == 0x81 && last >= 0xa6 && last <= 0xa9;
}

}  // namespace sbx
