#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Paths as parts, and patterns of parts: `*`, `?` and `[...]` within one name, `**` for any number
/// of directories.
namespace sbx::plan {

/// "a//b/./c" gives a, b, c.
[[nodiscard]] std::vector<std::string> parts_of(std::string_view path);
/// Position of the first wildcard, or npos.
[[nodiscard]] std::size_t find_wild(std::string_view part);
[[nodiscard]] bool is_wild(std::string_view part);
/// Matches one name. A name always matches a pattern spelled the same: "[old]" also matches itself.
[[nodiscard]] bool name_matches(const std::string& pattern, const std::string& name);
[[nodiscard]] bool parts_match(const std::vector<std::string>& pattern,
                               const std::vector<std::string>& path);

}  // namespace sbx::plan
