#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// What the commands that answer a question share: exit statuses beside include/sbx/outcome.hpp's,
/// output, and times.
namespace sbx::cli {

inline constexpr int kDone = 0;
inline constexpr int kFindings = 1;
inline constexpr int kUsage = 2;

/// Prints to stdout; 125 if that fails.
int print(const std::string& text);
/// The same; on a terminal each line is broken at blanks to fit its width.
int print_fitted(const std::string& text);
/// Breaks the lines that are longer than `columns`. What follows stands below the text of the
/// line's last column, which begins after two blanks; it is never narrower than half of the width.
/// Escape sequences take no room.
[[nodiscard]] std::string fitted(std::string_view text, std::size_t columns);

/// Seconds since 1970 in the caller's time zone: "2026-01-31 12:00:00". "?" if unknown (0).
[[nodiscard]] std::string time_text(std::int64_t seconds);
/// The same without the seconds.
[[nodiscard]] std::string minute_text(std::int64_t seconds);

}  // namespace sbx::cli
