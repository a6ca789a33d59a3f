#include "hints/ports.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "base/letters.hpp"
#include "plan/files/path_text.hpp"

namespace sbx::hints {
namespace {

using Port = std::optional<std::uint16_t>;

constexpr std::uint16_t kHttp = 80;
constexpr std::uint16_t kSsh = 22;

struct Scheme {
  std::array<char, 6> name;
  std::uint16_t port;
};
constexpr auto kSchemes = std::to_array<Scheme>({{{"http"}, kHttp},
                                                 {{"ws"}, kHttp},
                                                 {{"https"}, 443},
                                                 {{"wss"}, 443},
                                                 {{"ssh"}, kSsh},
                                                 {{"ftp"}, 21},
                                                 {{"git"}, 9418}});

std::string in_lower_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

Port number(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), port);
  const char* behind = end;
  if (behind != text.end() && *behind == '.') ++behind;  // the sentence's end, or more of a name
  const bool is_whole = behind == text.end() || !is_of_name(*behind);
  return error == std::errc{} && is_whole && port > 0 ? Port(port) : std::nullopt;
}

/// ":8080", "', 25)", "', port=80)", " port 5432".
Port port_behind(std::string_view rest) {
  const bool is_quoted = rest.starts_with('\'') || rest.starts_with('"');
  if (is_quoted) rest.remove_prefix(1);
  if (rest.starts_with(':')) return number(rest.substr(1));
  if (is_quoted && rest.starts_with(',')) {
    rest.remove_prefix(1);
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    if (rest.starts_with("port=")) rest.remove_prefix(5);
    return number(rest);
  }
  return rest.starts_with(" port ") ? number(rest.substr(6)) : std::nullopt;
}

/// By what stands before the name: "http://", "http://user@", "git@".
Port port_of_scheme(std::string_view before) {
  if (before.ends_with('@')) {
    const auto begin = before.find_last_of(" \t\n\"'/");
    before = before.substr(0, begin == std::string_view::npos ? 0 : begin + 1);
    if (!before.ends_with("://")) return kSsh;
  }
  if (!before.ends_with("://")) return std::nullopt;
  before.remove_suffix(3);
  for (const auto& [name, port] : kSchemes) {
    const std::string_view scheme(name.data());
    if (before.ends_with(scheme) &&
        (before.size() == scheme.size() || !is_of_name(before[before.size() - scheme.size() - 1])))
      return port;
  }
  return std::nullopt;
}

/// Both are in lower case.
Port port_in_line(std::string_view text, std::string_view name) {
  for (auto at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::string_view before = text.substr(0, at);
    const std::string_view rest = text.substr(at + name.size());
    if (!before.empty() && (is_of_name(before.back()) || before.back() == '.')) continue;
    if (!rest.empty() &&
        (is_of_name(rest[0]) || (rest[0] == '.' && rest.size() > 1 && is_of_name(rest[1]))))
      continue;
    if (const Port port = port_behind(rest)) return port;
    if (const Port port = port_of_scheme(before)) return port;
  }
  return std::nullopt;
}

bool speaks_http(std::string_view program) {
  return program == "curl" || program == "wget" || program == "http";
}

}  // namespace

Port port_in(std::string_view text, std::string_view name) {
  return name.empty() ? std::nullopt : port_in_line(in_lower_case(text), in_lower_case(name));
}

Port port_in(const std::vector<std::string>& command, std::string_view typed) {
  const std::string name = in_lower_case(typed);
  for (const std::string& word : command)
    if (const Port port = port_in(word, name)) return port;
  bool is_http = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string word = in_lower_case(command[i]);
    is_http = is_http || speaks_http(plan::base_name(command[i]));
    if (!word.starts_with(name)) continue;
    const bool is_name = word.size() == name.size();
    if (is_name && i + 1 < command.size())
      if (const Port port = number(command[i + 1])) return port;
    if (is_http && (is_name || word[name.size()] == '/')) return kHttp;
  }
  return std::nullopt;
}

}  // namespace sbx::hints
