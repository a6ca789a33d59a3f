#include "base/visible_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/hidden.hpp"
#include "base/text.hpp"

namespace sbx {
namespace {

bool is_shown_as_number(char32_t c) {
  return c < 0x09 || (c > 0x0A && c < 0x20) || (c >= 0x7F && c <= 0x9F) || is_hidden(c);
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
