#include "plan/files/pattern.hpp"

#include <fnmatch.h>

#include <algorithm>

namespace sbx::plan {

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const auto slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
  }
  return parts;
}

std::size_t find_wild(std::string_view part) {
  const auto wild = [](char c) { return c == '*' || c == '?' || c == '[' || c == '\\'; };
  const auto found = std::ranges::find_if(part, wild);
  return found == part.end() ? std::string_view::npos
                             : static_cast<std::size_t>(found - part.begin());
}

bool is_wild(std::string_view part) {
  return find_wild(part) != std::string_view::npos;
}

bool name_matches(const std::string& pattern, const std::string& name) {
  return pattern == name || (is_wild(pattern) && ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0);
}

/// Backtracks to the last `**` only, which is sufficient and bounds the cost to pattern times path.
bool parts_match(const std::vector<std::string>& pattern, const std::vector<std::string>& path) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = pattern.size();
  std::size_t resume = 0;
  while (t < path.size()) {
    if (p < pattern.size() && pattern[p] == "**") {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && name_matches(pattern[p], path[t])) {
      ++p;
      ++t;
    } else if (star < pattern.size()) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == "**") ++p;
  return p == pattern.size();
}

}  // namespace sbx::plan
