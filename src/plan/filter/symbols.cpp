#include "plan/filter/symbols.hpp"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/personality.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <csignal>

#include "base/letters.hpp"

#ifndef SOL_UDP
#define SOL_UDP 17
#endif

namespace sbx::plan {
namespace {

struct Symbol {
  std::uint64_t value;
  char name[40];
};

#define SYMBOL(name) Symbol{static_cast<std::uint64_t>(name), #name},
constexpr auto kSymbols = std::to_array<Symbol>({
#include "plan/filter/symbols.def"
});
#undef SYMBOL
static_assert(std::ranges::is_sorted(kSymbols, {}, [](const Symbol& symbol) {
  return std::string_view(symbol.name);
}));

std::optional<std::uint64_t> parse_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.starts_with("0o")) {
    base = 8;
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return negative ? std::uint64_t{0} - value : value;
}

std::optional<std::uint64_t> resolve_one(std::string_view text) {
  if (text.empty()) return std::nullopt;
  if (text[0] == '-' || (text[0] >= '0' && text[0] <= '9')) return parse_number(text);
  const auto name_of = [](const Symbol& symbol) { return std::string_view(symbol.name); };
  const auto found = std::ranges::lower_bound(kSymbols, text, {}, name_of);
  if (found == kSymbols.end() || name_of(*found) != text) return std::nullopt;
  return found->value;
}

}  // namespace

std::optional<std::uint64_t> resolve_symbol(std::string_view text) {
  std::uint64_t value = 0;
  for (;;) {
    const std::size_t bar = text.find('|');
    const auto part = resolve_one(trimmed(text.substr(0, bar), " "));
    if (!part) return std::nullopt;
    value |= *part;
    if (bar == std::string_view::npos) return value;
    text.remove_prefix(bar + 1);
  }
}

std::string_view symbol_name(std::string_view prefix, std::uint64_t value) {
  for (const Symbol& symbol : kSymbols) {
    if (symbol.value == value && std::string_view(symbol.name).starts_with(prefix)) {
      return symbol.name;
    }
  }
  return {};
}

std::string flag_names(std::string_view prefix, std::uint64_t flags) {
  std::string text;
  for (const Symbol& symbol : kSymbols) {
    if (!std::string_view(symbol.name).starts_with(prefix)) continue;
    if (!std::has_single_bit(symbol.value) || (flags & symbol.value) == 0) continue;
    if (!text.empty()) text += '|';
    text += symbol.name;
  }
  return text;
}

std::string_view nearest_symbol(std::string_view text) {
  std::string_view best;
  std::size_t best_distance = text.size() / 3 + 2;
  for (const Symbol& symbol : kSymbols) {
    const std::size_t distance = edit_distance(text, symbol.name);
    if (distance < best_distance) {
      best = symbol.name;
      best_distance = distance;
    }
  }
  return best;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  constexpr std::size_t kLongest = 48;
  if (a.size() > kLongest || b.size() > kLongest) return kLongest;
  std::array<std::size_t, kLongest + 1> row{};
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace sbx::plan
