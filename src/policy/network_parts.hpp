#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

/// What the reader and the matcher of network rules share.
namespace sbx::policy {

struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  bool operator==(const PortRange&) const = default;
};

/// Every part, the empty ones too, in front, within and at the end: "a..b." has four.
[[nodiscard]] std::vector<std::string_view> every_part(std::string_view text, char separator);
/// Ascending, with ranges that touch or overlap made one.
[[nodiscard]] std::vector<PortRange> merged(std::vector<PortRange> ports);
/// `parent` itself or a name that ends in it after a dot.
[[nodiscard]] bool is_at_or_below(std::string_view name, std::string_view parent);
/// Names that sbx defines itself: localhost, sbx.internal and the names below them.
[[nodiscard]] bool is_own_name(std::string_view name);

}  // namespace sbx::policy
