#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include <sbx/outcome.hpp>

/// Which names are meant by a pattern, and which are never brought out by one.
namespace sbx::workspace {

/// True if the pattern matches `path`: `*`, `?` and `[...]` within one name, `**` for any number of
/// directories.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view path);
[[nodiscard]] bool matches_any(const std::vector<std::string>& patterns, std::string_view path);
/// One of the patterns is this very path: that names it, `**` does not.
[[nodiscard]] bool is_named(const std::vector<std::string>& patterns, std::string_view path);

/// What a program of the host does by itself with a name on `path`, a path below the directory
/// `directory`: git runs its hooks, a shell its start files. Empty: nothing, the name is not
/// protected.
[[nodiscard]] std::string_view reason_to_protect(std::string_view directory, std::string_view path,
                                                 FileType type);
/// The same, as what was left out says it. `cure` says how to get it in spite of that.
[[nodiscard]] std::string protected_words(std::string_view reason, std::string_view cure);

/// "a FIFO", "a symbolic link".
[[nodiscard]] const char* describe(FileType type);

}  // namespace sbx::workspace
