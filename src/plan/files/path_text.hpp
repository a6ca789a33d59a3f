#pragma once

#include <string>
#include <string_view>

/// Paths as text; nothing here accesses files.
namespace sbx::plan {

/// `directory`/`name`; `name` alone if it is absolute.
[[nodiscard]] inline std::string joined(std::string_view directory, std::string_view name) {
  if (name.starts_with('/')) return std::string(name);
  std::string path(directory);
  if (!path.ends_with('/')) path += '/';
  path += name;
  return path;
}

[[nodiscard]] inline std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

/// "/a/b" for "/a/b/c", "/" for "/a" and for "/".
[[nodiscard]] inline std::string parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string_view::npos ? "/" : std::string(path.substr(0, slash));
}

/// A path as `--read PATH:TARGET` takes it: colons and backslashes are escaped with a backslash.
[[nodiscard]] inline std::string operand_text(std::string_view path) {
  std::string text;
  for (const char c : path) {
    if (c == ':' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

/// True for `directory` itself and everything below it. Both must be absolute and normalized.
[[nodiscard]] inline bool is_within(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

/// What follows `directory` in `path`, with its leading slash; empty if they are equal. Requires
/// is_within(path, directory).
[[nodiscard]] inline std::string_view below(std::string_view path, std::string_view directory) {
  if (directory == "/") return path == "/" ? std::string_view() : path;
  return path.substr(directory.size());
}

/// Number of components: 0 for "/".
[[nodiscard]] inline int depth_of(std::string_view path) {
  int depth = 0;
  for (std::size_t at = 0; at < path.size(); ++at)
    if (path[at] != '/' && (at == 0 || path[at - 1] == '/')) ++depth;
  return depth;
}

/// Removes ".", "..", doubled and trailing slashes; ".." is resolved as text. Requires an absolute
/// path.
[[nodiscard]] inline std::string normal(std::string_view path) {
  std::string plain;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      plain.resize(plain.empty() ? 0 : plain.rfind('/'));
      continue;
    }
    plain += '/';
    plain += part;
  }
  return plain.empty() ? "/" : plain;
}

}  // namespace sbx::plan
