#include "policy/network_names.hpp"

#include <idn2.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/letters.hpp"
#include "policy/network_parts.hpp"
#include "policy/syntax.hpp"

namespace sbx::policy {
namespace {

constexpr std::size_t kLongestName = 253;
constexpr std::size_t kLongestLabel = 63;
/// Longer texts are not given to libidn2: four bytes a character, and no character gets shorter.
constexpr std::size_t kLongestUnicode = 4 * kLongestName;

std::unexpected<Problem> bad_name(std::string message, std::string hint) {
  return std::unexpected(Problem{"bad-destination", std::move(message), std::move(hint)});
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}
bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

/// IDNA 2008 as it stands, without the mappings of UTS 46: a text is one name or none, and no
/// full-width letter or dot becomes another one.
Checked<std::string> to_ascii(const std::string& name) {
  char* converted = nullptr;
  const int status = name.size() > kLongestUnicode
                         ? IDN2_TOO_BIG_DOMAIN
                         : ::idn2_lookup_u8(reinterpret_cast<const std::uint8_t*>(name.c_str()),
                                            reinterpret_cast<std::uint8_t**>(&converted),
                                            IDN2_NFC_INPUT | IDN2_NO_TR46);
  const std::unique_ptr<char, void (*)(void*)> owned(converted, ::idn2_free);
  if (status != IDN2_OK) {
    return bad_name(
        quoted(name) + " is not an international name (" + ::idn2_strerror(status) + ")",
        "write it in lower case, or as \"xn--…\"");
  }
  return std::string(converted);
}

/// What is wrong with one label, or empty.
std::string label_problem(std::string_view label) {
  if (label.empty()) return "has an empty label";
  if (label.size() > kLongestLabel) {
    return "has a label of " + std::to_string(label.size()) + " bytes, and " +
           std::to_string(kLongestLabel) + " is the most";
  }
  if (label.find('*') != std::string_view::npos) return "has a * within";
  if (!std::ranges::all_of(label, is_name_character)) {
    const auto at = std::ranges::find_if_not(label, is_name_character);
    return "has " + quoted(std::string_view(&*at, 1)) + " in it";
  }
  if (label.front() == '-' || label.back() == '-') return "has a label that begins or ends with -";
  return {};
}

/// inet_aton(3) and the URL standard read such a last label as (part of) an address.
bool reads_as_number(std::string_view label) {
  if (std::ranges::all_of(label, is_digit)) return true;
  if (!label.starts_with("0x")) return false;
  return std::ranges::all_of(label.substr(2),
                             [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

}  // namespace

Checked<std::string> canonical_name(std::string_view text) {
  constexpr std::string_view kForm = "write it as \"api.example.com\"";
  if (text.find('\0') != std::string_view::npos)
    return bad_name(quoted(text) + " has a NUL in it",
                    "programs would read only what is before it");
  std::string name = lower(text);
  if (!std::ranges::all_of(name, is_ascii)) {
    auto converted = to_ascii(name);
    if (!converted) return converted;
    name = std::move(*converted);
  }
  if (name.size() > 1 && name.ends_with('.')) name.pop_back();
  if (name.empty()) return bad_name("there is no name", std::string(kForm));
  if (name.size() > kLongestName) {
    return bad_name("a name of " + std::to_string(name.size()) + " bytes, and " +
                        std::to_string(kLongestName) + " is the most",
                    "no such name exists: leave it out");
  }
  const auto labels = every_part(name, '.');
  for (const std::string_view label : labels) {
    if (std::string wrong = label_problem(label); !wrong.empty())
      return bad_name(quoted(text) + " " + wrong, std::string(kForm));
  }
  if (reads_as_number(labels.back())) {
    return bad_name(
        quoted(text) + " is neither a name nor an address",
        "write an address as four decimal numbers without leading zeros: \"192.0.2.1\"");
  }
  return name;
}

}  // namespace sbx::policy
