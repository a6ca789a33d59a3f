#include "plan/files/git_identity.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/letters.hpp"

namespace sbx::plan {
namespace {

struct Wanted {
  std::string_view section;
  std::string_view key;
};
constexpr std::array<Wanted, 3> kWanted = {
    {{"user", "name"}, {"user", "email"}, {"init", "defaultbranch"}}};

std::string lower(std::string_view text) {
  std::string changed(text);
  std::ranges::transform(changed, changed.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return changed;
}

/// Removes "[user]" from the front of a line; a setting may follow on the same line.
std::string_view take_section(std::string_view line, std::string& section) {
  if (!line.starts_with('[')) return line;
  const std::size_t end = line.find(']');
  section = lower(trimmed(line.substr(1, end == std::string_view::npos ? end : end - 1)));
  return end == std::string_view::npos ? std::string_view() : trimmed(line.substr(end + 1));
}

}  // namespace

bool is_git_settings(std::string_view path_below_home) {
  return path_below_home == "/.gitconfig" || path_below_home == "/.config/git/config";
}

std::string git_identity(std::string_view git_config) {
  std::string kept;
  std::string section;
  while (!git_config.empty()) {
    const std::size_t end = git_config.find('\n');
    const std::string_view line = take_section(trimmed(git_config.substr(0, end)), section);
    git_config.remove_prefix(end == std::string_view::npos ? git_config.size() : end + 1);
    const std::size_t equals = line.find('=');
    // A backslash continues the line; no name or address needs that.
    if (equals == std::string_view::npos || line.ends_with('\\')) continue;
    const std::string key = lower(trimmed(line.substr(0, equals)));
    for (const auto& [wanted_section, wanted_key] : kWanted)
      if (section == wanted_section && key == wanted_key)
        kept.append("[").append(section).append("]\n\t").append(line).append("\n");
  }
  return kept;
}

}  // namespace sbx::plan
