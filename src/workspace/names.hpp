#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include <sbx/outcome.hpp>

/// Which names are meant by a pattern, and which are never brought out by one.
namespace sbx::workspace {

/// True if the pattern matches `path`: `*`, `?` and `[...]` within one name, `**` for any number of directories.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view path);
[[nodiscard]] bool matches_any(const std::vector<std::string>& patterns, std::string_view path);
/// One of the patterns is this very path: that names it, `**` does not.
[[nodiscard]] bool is_named(const std::vector<std::string>& patterns, std::string_view path);

/// Names by which a program of the host can be made to run something: git's hooks and settings,
/// start files of shells, settings of editors and agents.
[[nodiscard]] bool is_protected(std::string_view path, FileType type);

/// "a FIFO", "a symbolic link".
[[nodiscard]] const char* describe(FileType type);

}  // namespace sbx::workspace
