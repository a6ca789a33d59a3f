#include "policy/network_parts.hpp"

#include <algorithm>

namespace sbx::policy {

bool is_at_or_below(std::string_view name, std::string_view parent) {
  return name == parent || (name.size() > parent.size() && name.ends_with(parent) &&
                            name[name.size() - parent.size() - 1] == '.');
}

bool is_own_name(std::string_view name) {
  return is_at_or_below(name, "localhost") || is_at_or_below(name, "sbx.internal");
}

std::vector<std::string_view> every_part(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<PortRange> merged(std::vector<PortRange> ports) {
  std::ranges::sort(ports, {}, &PortRange::first);
  std::vector<PortRange> result;
  for (const PortRange& range : ports) {
    if (!result.empty() && range.first <= result.back().last + 1U)
      result.back().last = std::max(result.back().last, range.last);
    else
      result.push_back(range);
  }
  return result;
}

}  // namespace sbx::policy
