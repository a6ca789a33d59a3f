#include "workspace/names.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include "plan/files/pattern.hpp"
#include "plan/files/protected.hpp"

namespace sbx::workspace {
namespace {

bool is_in_repository(const std::string& path) {
  return std::ranges::any_of(plan::parts_of(path), plan::is_dot_git);
}

}  // namespace

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

std::string_view reason_to_protect(std::string_view directory, std::string_view path,
                                   FileType type) {
  std::string place;
  std::string_view why;
  std::vector<std::string> parts = plan::parts_of(directory);
  const std::size_t first = parts.size();
  std::ranges::move(plan::parts_of(path), std::back_inserter(parts));
  std::size_t modules = parts.size();  // where in `parts` a .git/modules is
  for (std::size_t i = 0; i < parts.size() && why.empty(); ++i) {
    const bool is_directory = i + 1 < parts.size() || type == FileType::directory;
    const bool begins = is_directory && plan::holds_submodules(place, parts[i]);
    if (i > modules)
      why = plan::reason_in_modules(std::span(parts).subspan(modules + 1, i - modules - 1),
                                    parts[i], is_directory);
    else if (i >= first && !begins)
      why = plan::reason_to_guard(place, parts[i], is_directory);
    if (begins) modules = std::min(modules, i);
    place += '/';
    place += parts[i];
  }
  // Reflogs and messages are written through a link: .git/logs/HEAD may lead to a start-up file,
  // with names of branches.
  if (why.empty() && type == FileType::link && is_in_repository(place))
    why = "git reads and writes where it leads";
  return why;
}

std::string protected_words(std::string_view reason, std::string_view cure) {
  return "a protected name (" + std::string(reason) + "): " + std::string(cure);
}

const char* describe(FileType type) {
  switch (type) {
    case FileType::file:
      return "a file";
    case FileType::directory:
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
