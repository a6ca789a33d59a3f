#include "policy/values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <type_traits>

#include "base/too_large.hpp"

namespace sbx::policy {
namespace {

template <class T>
struct Said {
  T value{};
  std::string toml;  ///< how it was written, for the message
};

std::string double_text(double value) {
  std::array<char, 32> digits{};
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  std::string text(digits.data(), result.ptr);
  // In TOML a number without a dot is an integer.
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

/// The same quantity as the key's table writes it.
template <class T>
std::optional<T> from_table(std::string_view text) {
  if constexpr (std::is_same_v<T, Bytes>) return parse_bytes(text);
  if constexpr (std::is_same_v<T, Milliseconds>) return parse_duration(text);
  if constexpr (std::is_same_v<T, double>) return number_of(text);
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional(value)
                                                                    : std::nullopt;
  }
  return std::nullopt;
}

std::string toml_of_default(const Key& key, std::string_view text) {
  return key.type == Type::size || key.type == Type::duration ? quoted(text) : std::string(text);
}

struct Range {
  std::string_view least;
  std::string_view most;
};

Range range_of(const Key& key) {
  const auto dots = key.accepts.find("..");
  return {.least = key.accepts.substr(0, dots), .most = key.accepts.substr(dots + 2)};
}

void out_of_range(const Key& key, const Node& node, std::string_view nearest, Reading& reading) {
  const auto [least, most] = range_of(key);
  reading.report(
      key, node,
      {"out-of-range",
       short_text(node) + " is not from " + std::string(least) + " to " + std::string(most),
       reading.cure(key.name, toml_of_default(key, nearest))});
}

template <class T>
bool in_range(const Key& key, const Node& node, T value, Reading& reading) {
  const auto [least, most] = range_of(key);
  // A NaN is neither below nor above, so it is the comparison that must hold.
  const bool low = !(value >= *from_table<T>(least));
  const bool high = !(value <= *from_table<T>(most));
  if (low || high) out_of_range(key, node, low ? least : most, reading);
  return !low && !high;
}

std::string wrong_type_text(const Key& key, const Node& node) {
  return expected_text(type_name(key), node);
}

void wrong_type(const Key& key, const Node& node, std::string_view toml, Reading& reading) {
  reading.report(key, node,
                 {"wrong-type", wrong_type_text(key, node),
                  reading.cure(key.name, toml.empty() ? example(key) : toml)});
}

std::string without_spaces(std::string_view text, int (*letter)(int)) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' && c != '_') out += static_cast<char>(letter(static_cast<unsigned char>(c)));
  }
  return out;
}
int to_upper(int c) {
  return c >= 'a' && c <= 'z' ? c - 0x20 : c;
}
int to_lower(int c) {
  return c >= 'A' && c <= 'Z' ? c + 0x20 : c;
}
bool only_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// "1m30s": the sum; nothing for anything else.
std::optional<Milliseconds> sum_of_parts(std::string_view text) {
  Milliseconds sum{};
  while (!text.empty()) {
    const std::size_t unit = text.find_first_not_of("0123456789.");
    if (unit == std::string_view::npos || unit == 0) return std::nullopt;
    const std::size_t next = std::min(text.find_first_of("0123456789", unit), text.size());
    const auto part = parse_duration(text.substr(0, next));
    if (!part) return std::nullopt;
    sum += *part;
    text.remove_prefix(next);
  }
  return sum;
}

}  // namespace

std::optional<std::string> meant_size(std::string_view text) {
  std::string trial = without_spaces(text, to_upper);
  if (only_digits(trial)) trial += trial.size() < 5 ? "M" : "B";
  for (const std::string_view ending : {"IB", "B", "I"}) {
    if (trial.size() > ending.size() + 1 && trial.ends_with(ending) && !parse_bytes(trial)) {
      trial.resize(trial.size() - ending.size());
    }
  }
  const auto value = parse_bytes(trial);
  return value && value->count > 0 ? std::optional(to_text(*value)) : std::nullopt;
}

std::optional<std::string> meant_duration(std::string_view text) {
  constexpr auto kNames =
      std::to_array<std::pair<std::string_view, std::string_view>>({{"milliseconds", "ms"},
                                                                    {"millis", "ms"},
                                                                    {"msec", "ms"},
                                                                    {"seconds", "s"},
                                                                    {"second", "s"},
                                                                    {"secs", "s"},
                                                                    {"sec", "s"},
                                                                    {"minutes", "m"},
                                                                    {"minute", "m"},
                                                                    {"mins", "m"},
                                                                    {"min", "m"},
                                                                    {"hours", "h"},
                                                                    {"hour", "h"},
                                                                    {"hrs", "h"},
                                                                    {"hr", "h"}});
  std::string trial = without_spaces(text, to_lower);
  if (only_digits(trial)) trial += "s";
  for (const auto& [name, unit] : kNames) {
    if (!trial.ends_with(name)) continue;
    trial.replace(trial.size() - name.size(), name.size(), unit);
    break;
  }
  if (trial.ends_with('d') && only_digits(std::string_view(trial).substr(0, trial.size() - 1)) &&
      trial.size() < 5) {
    trial = std::to_string(24 * std::stoul(trial)) + "h";
  }
  auto value = parse_duration(trial);
  if (!value) value = sum_of_parts(trial);
  return value && value->count() > 0 ? std::optional(to_text(*value)) : std::nullopt;
}

namespace {

/// Sizes and durations are strings with a unit.
template <class T>
std::optional<T> read_quantity(const Key& key, const Node& node, Reading& reading,
                               std::optional<T> (*parse)(std::string_view),
                               std::optional<std::string> (*repair)(std::string_view),
                               std::string_view units) {
  const auto* text = node.as<std::string>();
  if (text == nullptr) {
    const auto* integer = node.as<std::int64_t>();
    const auto meant = integer != nullptr ? repair(std::to_string(*integer)) : std::nullopt;
    wrong_type(key, node, meant ? quoted(*meant) : std::string{}, reading);
    return std::nullopt;
  }
  if (const auto value = parse(*text))
    return in_range(key, node, *value, reading) ? value : std::nullopt;
  if (is_too_large(*text, parse)) {
    out_of_range(key, node, range_of(key).most, reading);
    return std::nullopt;
  }
  const auto meant = text->size() < 40 ? repair(*text) : std::nullopt;
  reading.report(key, node,
                 {"bad-unit", short_text(node) + " is not " + std::string(type_name(key)),
                  reading.cure(key.name, meant ? quoted(*meant) : example(key)) +
                      "; the units are " + std::string(units)});
  return std::nullopt;
}

}  // namespace

template <>
std::optional<bool> read_value<bool>(const Key& key, const Node& node, Reading& reading) {
  if (const auto* value = node.as<bool>()) return *value;
  const auto* text = node.as<std::string>();
  wrong_type(key, node, text != nullptr && *text == "false" ? "false" : "true", reading);
  return std::nullopt;
}

template <>
std::optional<std::uint64_t> read_value<std::uint64_t>(const Key& key, const Node& node,
                                                       Reading& reading) {
  const auto* value = node.as<std::int64_t>();
  if (value == nullptr) {
    const auto* text = node.as<std::string>();
    wrong_type(key, node, text != nullptr && only_digits(*text) ? *text : std::string{}, reading);
    return std::nullopt;
  }
  // A negative integer would be a large one without its sign.
  const auto count = *value < 0 ? 0 : static_cast<std::uint64_t>(*value);
  if (*value < 0 && key.accepts.starts_with("0..")) {
    reading.report(
        key, node,
        {"out-of-range", short_text(node) + " is negative", reading.cure(key.name, "0")});
    return std::nullopt;
  }
  return in_range(key, node, count, reading) ? std::optional(count) : std::nullopt;
}

template <>
std::optional<double> read_value<double>(const Key& key, const Node& node, Reading& reading) {
  if (const auto* integer = node.as<std::int64_t>()) {
    const auto value = static_cast<double>(*integer);
    return in_range(key, node, value, reading) ? std::optional(value) : std::nullopt;
  }
  if (const auto* value = node.as<double>())
    return in_range(key, node, *value, reading) ? std::optional(*value) : std::nullopt;
  wrong_type(key, node, {}, reading);
  return std::nullopt;
}

template <>
std::optional<Bytes> read_value<Bytes>(const Key& key, const Node& node, Reading& reading) {
  return read_quantity<Bytes>(key, node, reading, parse_bytes, meant_size, "B, K, M, G, T");
}

template <>
std::optional<Milliseconds> read_value<Milliseconds>(const Key& key, const Node& node,
                                                     Reading& reading) {
  return read_quantity<Milliseconds>(key, node, reading, parse_duration, meant_duration,
                                     "ms, s, m, h");
}

/// What to write where no word was nearly right. "on" may mean either of two networks.
std::string choice_cure(const Key& key, std::string_view first, Reading& reading) {
  if (key.name == "network.mode")
    return "write mode = \"allow-list\"; allow = [\"HOST:443\"] names what it reaches; "
           "\"host\" is the host's network, \"none\" shuts it off";
  return reading.cure(key.name, quoted(first));
}

/// The index of a word.
template <>
std::optional<unsigned char> read_value<unsigned char>(const Key& key, const Node& node,
                                                       Reading& reading) {
  const auto known = words(key);
  const auto* text = node.as<std::string>();
  if (text == nullptr) {
    reading.report(
        key, node,
        {"wrong-type", wrong_type_text(key, node), choice_cure(key, known.front(), reading)});
    return std::nullopt;
  }
  const auto found = std::ranges::find(known, *text);
  if (found != known.end()) return static_cast<unsigned char>(found - known.begin());
  std::string list;
  for (const std::string_view word : known) list += (list.empty() ? "" : ", ") + quoted(word);
  const std::string_view meant = nearest(*text, known);
  reading.report(key, node,
                 {"unknown-word", short_text(node) + " is not one of " + list,
                  meant.empty() ? choice_cure(key, known.front(), reading)
                                : "did you mean " + quoted(meant) + "?"});
  return std::nullopt;
}

template <>
std::optional<std::string> read_value<std::string>(const Key& key, const Node& node,
                                                   Reading& reading) {
  const auto* text = node.as<std::string>();
  if (text == nullptr) {
    wrong_type(key, node, {}, reading);
    return std::nullopt;
  }
  // "" means none, where a name is not required.
  if (text->empty() && (key.entry == Entry::any || key.entry == Entry::path)) return std::string{};
  auto checked = check_entry(key.entry, *text, reading.base());
  if (!checked) {
    reading.report(key, node, std::move(checked).error());
    return std::nullopt;
  }
  return std::move(*checked);
}

std::string scalar_toml(const Key& key, const Slot& slot) {
  return std::visit(
      [&](const auto& at) -> std::string {
        using At = std::decay_t<decltype(at)>;
        if constexpr (std::is_same_v<At, Sourced<bool>*>)
          return at->value ? "true" : "false";
        else if constexpr (std::is_same_v<At, Sourced<std::uint64_t>*>)
          return std::to_string(at->value);
        else if constexpr (std::is_same_v<At, Sourced<double>*>)
          return double_text(at->value);
        else if constexpr (std::is_same_v<At, Sourced<Bytes>*> ||
                           std::is_same_v<At, Sourced<Milliseconds>*>)
          return quoted(to_text(at->value));
        else if constexpr (std::is_same_v<At, Sourced<std::string>*>)
          return quoted(at->value);
        else if constexpr (std::is_same_v<At, Choice>)
          return quoted(words(key).at(*at.value));
        else
          return {};
      },
      slot);
}

void set_initial(const Key& key, Policy& policy) {
  const std::string_view text = key.initial;
  std::visit(
      [&](const auto& at) {
        using At = std::decay_t<decltype(at)>;
        if constexpr (std::is_same_v<At, Sourced<bool>*>)
          at->value = text == "true";
        else if constexpr (std::is_same_v<At, Sourced<std::uint64_t>*>)
          at->value = *from_table<std::uint64_t>(text);
        else if constexpr (std::is_same_v<At, Sourced<double>*>)
          at->value = *from_table<double>(text);
        else if constexpr (std::is_same_v<At, Sourced<Bytes>*>)
          at->value = *from_table<Bytes>(text);
        else if constexpr (std::is_same_v<At, Sourced<Milliseconds>*>)
          at->value = *from_table<Milliseconds>(text);
        else if constexpr (std::is_same_v<At, Sourced<std::string>*>)
          at->value = text;
        else if constexpr (std::is_same_v<At, Choice>) {
          const auto known = words(key);
          *at.value = static_cast<unsigned char>(std::ranges::find(known, text) - known.begin());
        } else if constexpr (std::is_same_v<At, ListTable*>) {
          for (const std::string_view pair : split(text, ' ')) {
            const auto colon = pair.find(':');
            (*at)[std::string(pair.substr(0, colon))].value = {std::string(pair.substr(colon + 1))};
          }
        }
      },
      key.slot(policy));
}

}  // namespace sbx::policy
