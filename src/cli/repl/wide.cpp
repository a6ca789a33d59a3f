#include "cli/repl/wide.hpp"

#include "base/text.hpp"

namespace sbx::cli {
namespace {

constexpr wchar_t kReplacement = 0xfffd;

unsigned byte_of(char letter) {
  return static_cast<unsigned char>(letter);
}

}  // namespace

std::wstring to_wide(std::string_view bytes) {
  std::wstring text;
  while (!bytes.empty()) {
    const std::size_t length = sequence_length(bytes);
    unsigned number = byte_of(bytes[0]);
    if (length > 1) number &= 0xffU >> (length + 1);
    for (std::size_t i = 1; i < length; ++i) number = number << 6U | (byte_of(bytes[i]) & 0x3fU);
    text += length == 0 ? kReplacement : static_cast<wchar_t>(number);
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return text;
}

std::string from_wide(std::wstring_view text) {
  std::string bytes;
  for (const wchar_t letter : text) {
    const auto number = static_cast<unsigned>(letter);
    const int more = number < 0x80 ? 0 : number < 0x800 ? 1 : number < 0x10000 ? 2 : 3;
    const unsigned lead = more == 0 ? 0 : 0xffU << (7 - more) & 0xffU;
    bytes += static_cast<char>(lead | number >> (6 * more));
    for (int left = more - 1; left >= 0; --left)
      bytes += static_cast<char>(0x80U | (number >> (6 * left) & 0x3fU));
  }
  return bytes;
}

}  // namespace sbx::cli
