#include "workspace/names.hpp"

#include <algorithm>

#include "plan/files/pattern.hpp"
#include "plan/files/protected.hpp"

namespace sbx::workspace {

bool matches(std::string_view pattern, std::string_view path) {
  return plan::parts_match(plan::parts_of(pattern), plan::parts_of(path));
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
  const std::vector<std::string> parts = plan::parts_of(path);
  std::string_view folder;
  for (const std::string& part : parts) {
    if (plan::is_protected(folder, part)) return true;
    folder = part;
  }
  return !parts.empty() && plan::is_guarded({}, parts.back(), type == FileType::folder);
}

const char* describe(FileType type) {
  switch (type) {
    case FileType::file:
      return "a file";
    case FileType::folder:
      return "a directory";
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
