#include "hints/listeners.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace sbx::hints {
namespace {

/// proc(5): "sl local_address rem_address st", addresses in hexadecimal; state 0A is LISTEN.
bool is_listener(std::string_view line, const std::string& port) {
  const auto colon = line.find(": ");
  if (colon == std::string_view::npos) return false;
  line.remove_prefix(colon + 2);
  const std::string_view local = line.substr(0, line.find(' '));
  const auto mark = local.find(':');
  if (mark == std::string_view::npos || local.substr(mark + 1) != port) return false;
  const std::string_view address = local.substr(0, mark);
  const bool is_reachable = address == "0100007F" || address == "00000000" ||
                            address == "00000000000000000000000001000000" ||
                            address == "00000000000000000000000000000000";
  line.remove_prefix(local.size());
  while (line.starts_with(' ')) line.remove_prefix(1);
  const auto after_remote = line.find(' ');
  return is_reachable && after_remote != std::string_view::npos &&
         line.substr(after_remote + 1).starts_with("0A");
}

}  // namespace

bool listens_on_loopback(const host::Files& files, unsigned port) {
  constexpr std::size_t kLargestTable = 1 << 20;
  const std::string wanted = fmt::format("{:04X}", port);
  for (const char* const table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const auto text = files.read_head(table, kLargestTable);
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    while (!rest.empty()) {
      const auto end = rest.find('\n');
      if (is_listener(rest.substr(0, end), wanted)) return true;
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
  }
  return false;
}

}  // namespace sbx::hints
