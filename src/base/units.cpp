#include <sbx/units.hpp>

#include <array>
#include <charconv>
#include <cstdio>
#include <limits>

namespace sbx {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};
constexpr std::array<Unit, 5> kSizes{
    {{"T", 1ULL << 40}, {"G", 1ULL << 30}, {"M", 1ULL << 20}, {"K", 1ULL << 10}, {"B", 1}}};
constexpr std::array<Unit, 4> kTimes{{{"ms", 1}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}}};
constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();

/// "12.5" as thousandths, so that fractions stay exact.
std::optional<std::uint64_t> thousandths(std::string_view digits) {
  const auto dot = digits.find('.');
  std::string_view whole = digits.substr(0, dot);
  std::string_view fraction =
      dot == std::string_view::npos ? std::string_view{} : digits.substr(dot + 1);
  if (whole.empty() || (dot != std::string_view::npos && fraction.empty()) || fraction.size() > 3)
    return std::nullopt;
  std::string joined(whole);
  joined += fraction;
  joined.append(3 - fraction.size(), '0');
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(joined.data(), joined.data() + joined.size(), value);
  if (error != std::errc{} || end != joined.data() + joined.size()) return std::nullopt;
  return value;
}

template <std::size_t N>
std::optional<std::uint64_t> with_unit(std::string_view text, const std::array<Unit, N>& units) {
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    const auto number = thousandths(text.substr(0, text.size() - unit.name.size()));
    if (!number) return std::nullopt;
    std::uint64_t product = 0;
    if (__builtin_mul_overflow(*number, unit.factor, &product) || product % 1000 != 0)
      return std::nullopt;
    product /= 1000;
    if (product > kLargest) return std::nullopt;
    return product;
  }
  return std::nullopt;
}

template <std::size_t N>
std::string shortest(std::uint64_t value, const std::array<Unit, N>& units,
                     std::string_view smallest) {
  const Unit* best = nullptr;
  for (const Unit& unit : units)
    if (value != 0 && value % unit.factor == 0 && (best == nullptr || unit.factor > best->factor))
      best = &unit;
  if (best == nullptr) return "0" + std::string(smallest);
  return std::to_string(value / best->factor) + std::string(best->name);
}

std::string one_decimal(double value, const char* unit) {
  std::array<char, 48> text{};
  const bool whole = value == static_cast<double>(static_cast<std::uint64_t>(value));
  std::snprintf(text.data(), text.size(), whole ? "%.0f %s" : "%.1f %s", value, unit);
  return text.data();
}

}  // namespace

std::optional<Bytes> parse_bytes(std::string_view text) {
  const auto count = with_unit(text, kSizes);
  return count ? std::optional(Bytes{*count}) : std::nullopt;
}

std::optional<Milliseconds> parse_duration(std::string_view text) {
  const auto count = with_unit(text, kTimes);
  return count ? std::optional(Milliseconds{static_cast<std::int64_t>(*count)}) : std::nullopt;
}

std::string to_text(Bytes value) {
  return shortest(value.count, kSizes, "B");
}

std::string to_text(Milliseconds value) {
  return shortest(static_cast<std::uint64_t>(value.count()), kTimes, "s");
}

std::string describe(Bytes value) {
  const auto count = static_cast<double>(value.count);
  if (value.count >= 1ULL << 40) return one_decimal(count / static_cast<double>(1ULL << 40), "TiB");
  if (value.count >= 1ULL << 30) return one_decimal(count / static_cast<double>(1ULL << 30), "GiB");
  if (value.count >= 1ULL << 20) return one_decimal(count / static_cast<double>(1ULL << 20), "MiB");
  if (value.count >= 1ULL << 10) return one_decimal(count / static_cast<double>(1ULL << 10), "KiB");
  return std::to_string(value.count) + (value.count == 1 ? " byte" : " bytes");
}

std::string describe(Milliseconds value) {
  const auto count = static_cast<double>(value.count());
  if (value.count() < 1000) return std::to_string(value.count()) + " ms";
  if (value.count() % 3'600'000 == 0) return one_decimal(count / 3'600'000, "h");
  if (value.count() % 60'000 == 0 && value.count() >= 120'000)
    return one_decimal(count / 60'000, "min");
  return one_decimal(count / 1000, "s");
}

}  // namespace sbx
