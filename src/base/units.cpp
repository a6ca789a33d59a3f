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

/// A decimal number, exact to three places.
struct Decimal {
  std::uint64_t whole = 0;
  std::uint64_t thousandths = 0;  ///< 0 to 999
};

std::optional<std::uint64_t> digits_only(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Decimal> decimal(std::string_view text) {
  constexpr std::size_t kPlaces = 3;
  const auto dot = text.find('.');
  const auto whole = digits_only(text.substr(0, dot));
  if (!whole) return std::nullopt;
  if (dot == std::string_view::npos) return Decimal{*whole, 0};
  std::string places(text.substr(dot + 1));
  if (places.empty() || places.size() > kPlaces) return std::nullopt;
  places.append(kPlaces - places.size(), '0');
  const auto thousandths = digits_only(places);
  return thousandths ? std::optional(Decimal{*whole, *thousandths}) : std::nullopt;
}

template <std::size_t N>
std::optional<std::uint64_t> with_unit(std::string_view text, const std::array<Unit, N>& units) {
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    const auto number = decimal(text.substr(0, text.size() - unit.name.size()));
    if (!number) return std::nullopt;
    const std::uint64_t part = number->thousandths * unit.factor;  // at most 999 T, which fits
    std::uint64_t value = 0;
    if (part % 1000 != 0 || __builtin_mul_overflow(number->whole, unit.factor, &value))
      return std::nullopt;
    if (__builtin_add_overflow(value, part / 1000, &value) || value > kLargest) return std::nullopt;
    return value;
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
