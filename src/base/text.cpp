#include "base/text.hpp"

#include <sha2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstring>

#include "base/hidden.hpp"

namespace sbx {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

std::size_t expected_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 0;
}

/// Overlong forms, surrogates and numbers above U+10FFFF show in the second byte (RFC 3629, section
/// 4).
bool second_byte_fits(unsigned char lead, unsigned char second) {
  switch (lead) {
    case 0xe0:
      return second >= 0xa0;
    case 0xed:
      return second <= 0x9f;
    case 0xf0:
      return second >= 0x90;
    case 0xf4:
      return second <= 0x8f;
    default:
      return true;
  }
}

/// Control characters, and those that nobody sees or that reorder the text around them.
bool is_steering(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7f;
  const char32_t c = character_of(sequence);
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || is_hidden(c);
}

void append_escaped(std::string& text, std::string_view bytes) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "\\x";
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
}

}  // namespace

std::size_t sequence_length(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const auto lead = static_cast<unsigned char>(bytes[0]);
  const std::size_t length = expected_length(lead);
  if (length == 0 || length > bytes.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(bytes[i]) & 0xc0) != 0x80) return 0;
  if (length > 1 && !second_byte_fits(lead, static_cast<unsigned char>(bytes[1]))) return 0;
  return length;
}

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t length = sequence_length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string lossy_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = sequence_length(bytes);
    if (length == 0)
      text += "\xef\xbf\xbd";
    else
      text += bytes.substr(0, length);
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return text;
}

namespace {

constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j)
      text += i + j <= bytes.size() ? kBase64Digits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

std::optional<std::string> base64_bytes(std::string_view text) {
  std::string bytes;
  std::uint32_t group = 0;
  unsigned bits = 0;
  for (const char digit : text) {
    if (digit == '\n' || digit == '\r' || digit == '=') continue;
    const std::size_t value = kBase64Digits.find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    group = group << 6 | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(group >> bits & 0xFFU);
  }
  return bytes;
}

namespace {

/// Where the longest run without a blank lies.
std::pair<std::size_t, std::size_t> longest_word(std::string_view text) {
  std::pair<std::size_t, std::size_t> longest{0, 0};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (end - at > longest.second) longest = {at, end - at};
    at = end + 1;
  }
  return longest;
}

bool is_inside_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

}  // namespace

std::string shortened(std::string text, std::size_t most) {
  constexpr std::string_view kGap = " ... ";
  constexpr std::size_t kShown = 40;  // of a word, at both ends together
  if (text.size() <= most) return text;
  const std::size_t over = text.size() - most + kGap.size();
  auto [begin, length] = longest_word(text);
  if (length < over + kShown) {
    if (text.size() <= 2 * most)
      return text;  // sentences of sbx's own, which lose their sense when they are cut
    begin = 0, length = text.size();
  }
  std::size_t first = begin + (length - over) / 2;
  std::size_t last = first + over;
  while (first > begin && is_inside_character(text[first])) --first;
  while (last < text.size() && is_inside_character(text[last])) ++last;
  return text.replace(first, last - first, kGap);
}

std::string printable(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = sequence_length(bytes);
    const std::string_view sequence = bytes.substr(0, length == 0 ? 1 : length);
    if (length == 0 || is_steering(sequence))
      append_escaped(text, sequence);
    else
      text += sequence;
    bytes.remove_prefix(sequence.size());
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  SHA2_CTX context;
  SHA256Init(&context);
  SHA256Update(&context, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  std::array<std::uint8_t, SHA256_DIGEST_LENGTH> digest{};
  SHA256Final(digest.data(), &context);
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

namespace {

/// For what a message can't show as it is: \xNN is a byte between $' and ', bash(1), "QUOTING". The
/// quote is one too: a shell that does not know $' would take \' for the end, and run what follows.
std::string with_escapes(const std::string& word) {
  std::string doubled;
  for (const char c : word) doubled += (c == '\\' ? "\\" : "") + std::string(1, c);
  std::string text = printable(doubled);
  for (auto at = text.find('\''); at != std::string::npos; at = text.find('\'', at))
    text.replace(at, 1, "\\x27");
  return "$'" + text + "'";
}

}  // namespace

bool is_variable_name(std::string_view word) {
  const auto is_letter = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !word.empty() && std::ranges::all_of(word, is_letter) &&
         std::isdigit(static_cast<unsigned char>(word.front())) == 0;
}

std::string shell_word(const std::string& word) {
  const std::string text = printable(word);
  if (text != word) return with_escapes(word);
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::strchr("_-./:=@%+,", c) != nullptr;
  });
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace sbx
