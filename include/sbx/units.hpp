#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sbx {

/// A number of bytes. Text form: a number and one of B K M G T (powers of 1024), "512M".
struct Bytes {
  std::uint64_t count = 0;
  auto operator<=>(const Bytes&) const = default;
};

using Milliseconds = std::chrono::milliseconds;

/// Parses "64K", "1G", "17B"; empty for any other text, a negative number, or one over 2^63-1.
[[nodiscard]] std::optional<Bytes> parse_bytes(std::string_view text);
/// Parses "250ms", "30s", "5m", "2h"; fractions ("1.5s") must be whole milliseconds.
[[nodiscard]] std::optional<Milliseconds> parse_duration(std::string_view text);
/// The shortest text that parses back to the same value: 1073741824 is "1G".
[[nodiscard]] std::string to_text(Bytes value);
[[nodiscard]] std::string to_text(Milliseconds value);
/// For people: "512 MiB", "1.5 GiB", "17 bytes".
[[nodiscard]] std::string describe(Bytes value);
/// For people: "250 ms", "30 s".
[[nodiscard]] std::string describe(Milliseconds value);

}  // namespace sbx
