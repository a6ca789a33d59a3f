#pragma once

#include <cstdint>
#include <string>

/// What the commands that answer a question share: exit statuses beside include/sbx/outcome.hpp's, output, and times.
namespace sbx::cli {

inline constexpr int kDone = 0;
inline constexpr int kFindings = 1;
inline constexpr int kUsage = 2;

/// Prints to stdout; 125 if that fails.
int print(const std::string& text);

/// Seconds since 1970 in the caller's time zone: "2026-01-31 12:00:00". "?" if unknown (0).
[[nodiscard]] std::string time_text(std::int64_t seconds);
/// The same without the seconds.
[[nodiscard]] std::string minute_text(std::int64_t seconds);

}  // namespace sbx::cli
