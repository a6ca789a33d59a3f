#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Paths as parts, and patterns of parts: `*`, `?` and `[...]` within one name, `**` for any number
/// of folders.
namespace sbx::plan {

/// "a//b/./c" gives a, b, c.
[[nodiscard]] std::vector<std::string> parts_of(std::string_view path);
/// Where the first wildcard is, or npos.
[[nodiscard]] std::size_t find_wild(std::string_view part);
[[nodiscard]] bool is_wild(std::string_view part);
/// One name. A name that is written like the pattern always matches: "[old]" means itself too.
[[nodiscard]] bool name_matches(const std::string& pattern, const std::string& name);
[[nodiscard]] bool parts_match(const std::vector<std::string>& pattern,
                               const std::vector<std::string>& path);

}  // namespace sbx::plan
