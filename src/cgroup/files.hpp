#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

/// Reads and writes the files of a control group. `directory` is a descriptor, or AT_FDCWD with a
/// path in `name`.
namespace sbx::cgroup {

/// The period of a quota of CPU time, and the shortest quota that the kernel accepts, in
/// microseconds.
inline constexpr std::uint64_t kPeriod = 100'000;
inline constexpr std::uint64_t kShortestQuota = 1000;

/// The first 4 KiB without the last newline; nothing when it can't be read.
[[nodiscard]] std::optional<std::string> read_text(int directory, const std::string& name);
/// Nothing for "max", -1 and what can't be read.
[[nodiscard]] std::optional<std::uint64_t> read_number(int directory, const std::string& name);
/// The same of an open file, as it is now.
[[nodiscard]] std::optional<std::uint64_t> read_number(int file);
/// The number after `key` in a file of "key number" lines; 0 when it is not there.
[[nodiscard]] std::uint64_t number_of(std::string_view text, std::string_view key);
/// Errors: setup, "cannot set memory.max to 1048576".
[[nodiscard]] Status write_text(int directory, const std::string& name, std::string_view text);
/// Whether a list of words separated by blanks holds this one.
[[nodiscard]] bool has_word(std::string_view list, std::string_view word);

/// The smaller of two, where there are two.
template <class Number>
void lower_to(std::optional<Number>& value, std::optional<Number> other) {
  if (other && (!value || *other < *value)) value = other;
}

}  // namespace sbx::cgroup
