#include "base/visible_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/text.hpp"

namespace sbx {
namespace {

char32_t character_of(std::string_view sequence) {
  constexpr std::uint8_t kFirst[] = {0x7F, 0x1F, 0x0F, 0x07};
  auto value =
      static_cast<char32_t>(static_cast<unsigned char>(sequence[0]) & kFirst[sequence.size() - 1]);
  for (const char each : sequence.substr(1))
    value = value << 6U | (static_cast<unsigned char>(each) & 0x3FU);
  return value;
}

/// Not the joiners U+200C and U+200D, which scripts and emoji need.
bool is_shown_as_number(char32_t c) {
  constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {0x00, 0x08},     {0x0B, 0x1F},     {0x7F, 0x9F},     {0x200B, 0x200B}, {0x200E, 0x200F},
      {0x2028, 0x202E}, {0x2060, 0x2064}, {0x2066, 0x206F}, {0xFEFF, 0xFEFF}, {0xE0000, 0xE007F}};
  return std::ranges::any_of(kRanges,
                             [c](const auto& each) { return each.first <= c && c <= each.second; });
}

}  // namespace

std::string visible_text(std::string_view text) {
  const std::string sound = lossy_utf8(text);
  std::string shown;
  for (std::string_view rest = sound; !rest.empty();) {
    const std::string_view sequence =
        rest.substr(0, std::max<std::size_t>(sequence_length(rest), 1));
    const char32_t c = character_of(sequence);
    if (is_shown_as_number(c))
      shown += fmt::format("\\u{{{:X}}}", static_cast<std::uint32_t>(c));
    else
      shown += sequence;
    rest.remove_prefix(sequence.size());
  }
  return shown;
}

std::string visible_line(std::string_view text, std::size_t most) {
  std::string shown;
  for (const char each : visible_text(text.substr(0, most)))
    shown += each == '\n' ? "\\u{A}" : each == '\t' ? " " : std::string(1, each);
  return lossy_utf8(shown) + (text.size() > most ? "…" : "");
}

}  // namespace sbx
