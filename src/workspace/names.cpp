#include "workspace/names.hpp"

#include <fnmatch.h>

#include <algorithm>

#include "plan/protected.hpp"

namespace sbx::workspace {
namespace {

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

/// Steps back to the last `**` only, which is enough and keeps the cost at pattern times path.
bool match_parts(const std::vector<std::string>& pattern, const std::vector<std::string>& path) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = pattern.size();
  std::size_t resume = 0;
  while (t < path.size()) {
    if (p < pattern.size() && pattern[p] == "**") {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && ::fnmatch(pattern[p].c_str(), path[t].c_str(), 0) == 0) {
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

}  // namespace

bool matches(std::string_view pattern, std::string_view path) {
  return match_parts(parts_of(pattern), parts_of(path));
}

bool matches_any(const std::vector<std::string>& patterns, std::string_view path) {
  return std::ranges::any_of(patterns,
                             [&](const std::string& each) { return matches(each, path); });
}

bool is_named(const std::vector<std::string>& patterns, std::string_view path) {
  return std::ranges::any_of(patterns, [&](std::string_view each) {
    if (each.starts_with("./")) each.remove_prefix(2);
    return each == path;
  });
}

bool is_protected(std::string_view path, FileType type) {
  const std::vector<std::string> parts = parts_of(path);
  std::string_view folder;
  for (const std::string& part : parts) {
    if (plan::is_protected(folder, part)) return true;
    folder = part;
  }
  // A file or link of that name sends git to a folder, and to hooks, of somebody else's choice.
  return !parts.empty() && parts.back() == ".git" && type != FileType::folder;
}

const char* describe(FileType type) {
  switch (type) {
    case FileType::file:
      return "a file";
    case FileType::folder:
      return "a folder";
    case FileType::link:
      return "a symbolic link";
    case FileType::fifo:
      return "a FIFO";
    case FileType::socket:
      return "a socket";
    case FileType::device:
      return "a device";
  }
  return "a file";
}

}  // namespace sbx::workspace
