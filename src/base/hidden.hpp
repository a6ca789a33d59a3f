#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

namespace sbx {

/// The character of a valid UTF-8 sequence.
[[nodiscard]] constexpr char32_t character_of(std::string_view sequence) {
  constexpr std::uint8_t kFirst[] = {0x7F, 0x1F, 0x0F, 0x07};
  auto value =
      static_cast<char32_t>(static_cast<unsigned char>(sequence[0]) & kFirst[sequence.size() - 1]);
  for (const char each : sequence.substr(1))
    value = value << 6U | (static_cast<unsigned char>(each) & 0x3FU);
  return value;
}

/// A character that nobody sees, or that reorders the text around it (Unicode Standard Annex 9).
/// Not the joiners U+200C and U+200D, nor U+FE0F, which scripts and emoji need.
[[nodiscard]] constexpr bool is_hidden(char32_t c) {
  constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {0xAD, 0xAD},     {0x34F, 0x34F},   {0x61C, 0x61C},   {0x115F, 0x1160},
      {0x17B4, 0x17B5}, {0x180B, 0x180F}, {0x200B, 0x200B}, {0x200E, 0x200F},
      {0x2028, 0x202E}, {0x2060, 0x206F}, {0x3164, 0x3164}, {0xFE00, 0xFE0E},
      {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0xE0000, 0xE0FFF}};
  return std::ranges::any_of(kRanges,
                             [c](const auto& each) { return each.first <= c && c <= each.second; });
}

}  // namespace sbx
