#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "workspace/changes.hpp"

/// What a change of a text looks like.
namespace sbx::changes {

using workspace::Copy;

/// Lines of a unified diff without its two header lines: "@@ …", " same", "-old", "+new". At most
/// `most` of them, then one that counts the rest. A change too large to be compared line by line is
/// shown as old lines and new lines.
[[nodiscard]] std::vector<std::string> unified_diff(const std::string& before,
                                                    const std::string& after, std::size_t most);

/// Each line of a new text as "+new". At most `most` of them, then one that counts the rest.
[[nodiscard]] std::vector<std::string> added_lines(const std::string& text, std::size_t most);

/// All of it, and each line with the newline that it has: a last line without one is another line.
[[nodiscard]] std::vector<std::string> exact_diff(const std::string& before,
                                                  const std::string& after);

/// No zero byte in it.
[[nodiscard]] bool is_text(const std::string& content);

/// The two sides of a modified file; `readable` is false when one is binary, no regular file, or
/// longer than 1 MiB.
struct Sides {
  std::string before;
  std::string after;
  std::uint64_t bytes_before = 0;
  bool readable = false;
};
[[nodiscard]] Sides sides_of(const Copy& copy, const Change& change);

/// What a created file holds; empty where it is binary, not a regular file, or longer than 1 MiB.
[[nodiscard]] std::string created_text(const Copy& copy, const Change& change);

/// Where a changed link leads now; empty for what is not a link.
[[nodiscard]] std::string link_text(const Copy& copy, const Change& change);

}  // namespace sbx::changes
