#pragma once

#include <string>
#include <string_view>

#include "policy/keys.hpp"
#include "policy/problem.hpp"

/// The forms of single strings in a policy: paths, patterns, names, destinations.
namespace sbx::policy {

/// What the relative forms of a path stand for.
struct PathBase {
  std::string directory;  ///< absolute; empty for a built-in policy, which has none
  std::string home;       ///< absolute; empty when the caller has none
};

/// The text as the policy keeps it: paths absolute and in lexical normal form, destinations and
/// publications canonical, everything else as written.
[[nodiscard]] Checked<std::string> check_entry(Entry entry, std::string_view text,
                                               const PathBase& base);

/// "~", relative and absolute forms, to an absolute path without "." and "..". Links are not looked
/// at.
[[nodiscard]] Checked<std::string> absolute_path(std::string_view text, const PathBase& base);
/// Lexical normal form of an absolute path: "/a//b/./c/.." is "/a/b".
[[nodiscard]] std::string normal_path(std::string_view path);
/// Refuses /, /proc, /sys, /dev and what is below the last three, as the source or target of a
/// grant.
[[nodiscard]] Checked<void> check_grantable(const std::string& path);
/// The directory part of an absolute or relative path, "." if it has none.
[[nodiscard]] std::string_view parent_path(std::string_view path);

}  // namespace sbx::policy
