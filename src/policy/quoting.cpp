#include "policy/quoting.hpp"

#include <algorithm>

namespace sbx::policy {
namespace {

constexpr std::size_t kLongestSourceLine = 400;

}  // namespace

std::string quoted(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      (out += kHex[byte >> 4]) += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out += '"';
}

std::string key_text(std::string_view name) {
  const auto bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  return !name.empty() && std::ranges::all_of(name, bare) ? std::string(name) : quoted(name);
}

std::string_view line_of(std::string_view text, int line) {
  for (int at = 1; at < line; ++at) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text.substr(0, kLongestSourceLine);
}

}  // namespace sbx::policy
