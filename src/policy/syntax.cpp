#include "policy/syntax.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

// toml++ 3.3 asserts things that a text can make false ("[."), and with NDEBUG tells clang to assume
// them; its own checks behind the assertions give the error. Without NDEBUG both are TOML_ASSERT.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
#define TOML_MAX_NESTED_VALUES 16
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wundef"
#include <toml++/toml.h>
#pragma GCC diagnostic pop
#pragma pop_macro("NDEBUG")

namespace sbx::policy {
namespace {

constexpr int kMostDots = 16;

/// Where a dotted key has too many parts. toml++ 3.3 bounds nested values but not dotted keys, and
/// the tables they make are destroyed recursively: 500,000 dots in one line would end the stack.
class DotScanner {
 public:
  explicit DotScanner(std::string_view text) : text_(text) {}

  std::optional<SyntaxError> scan() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '"' || c == '\'') {
        skip_string(c);
      } else {
        step(c);
        if (dots_ > kMostDots) return too_deep();
      }
    }
    return std::nullopt;
  }

 private:
  void step(char c) {
    if (c == '.') ++dots_;
    if (c == '\n' || c == '=' || c == ',' || c == '{' || c == '}' || c == '[' || c == ']')
      dots_ = 0;
    ++at_;
  }

  /// Past the closing quote; unterminated strings are the parser's to report.
  void skip_string(char quote) {
    const std::string triple(3, quote);
    const bool multiline = text_.substr(at_, 3) == triple;
    at_ += multiline ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\\' && quote == '"') {
        at_ += 2;
      } else if (multiline ? text_.substr(at_, 3) == triple : c == quote) {
        at_ += multiline ? 3 : 1;
        // A multi-line string may end in two quotes of its own: """x""""" .
        for (int own = 0; multiline && own < 2 && text_.substr(at_, 1) == triple.substr(0, 1);
             ++own)
          ++at_;
        return;
      } else if (!multiline && c == '\n') {
        return;
      } else {
        ++at_;
      }
    }
  }

  [[nodiscard]] SyntaxError too_deep() const {
    const std::string_view before = text_.substr(0, at_);
    const auto start = before.rfind('\n');
    const auto line_start = start == std::string_view::npos ? 0 : start + 1;
    return {.code = "nested-too-deep",
            .message = "a key has more than " + std::to_string(kMostDots) + " parts",
            .line = static_cast<int>(std::ranges::count(before, '\n')) + 1,
            .column = static_cast<int>(before.size() - line_start) + 1};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int dots_ = 0;
};

Node convert(const toml::node& from);

Node::Table convert_table(const toml::table& table) {
  Node::Table members;
  members.reserve(table.size());
  for (const auto& [key, value] : table) {
    const auto& begin = key.source().begin;
    members.push_back({.name = std::string(key.str()),
                       .line = static_cast<int>(begin.line),
                       .column = static_cast<int>(begin.column),
                       .value = convert(value)});
  }
  // toml++ sorts by name; findings are told in the order of the text.
  std::ranges::sort(members, {}, [](const Member& m) { return std::pair(m.line, m.column); });
  return members;
}

Node::List convert_list(const toml::array& array) {
  Node::List items;
  items.reserve(array.size());
  for (const toml::node& item : array) items.push_back(convert(item));
  return items;
}

Node convert(const toml::node& from) {
  Node node;
  node.line = static_cast<int>(from.source().begin.line);
  node.column = static_cast<int>(from.source().begin.column);
  switch (from.type()) {
    case toml::node_type::boolean:
      node.value = from.as_boolean()->get();
      break;
    case toml::node_type::integer:
      node.value = from.as_integer()->get();
      break;
    case toml::node_type::floating_point:
      node.value = from.as_floating_point()->get();
      break;
    case toml::node_type::string:
      node.value = from.as_string()->get();
      break;
    case toml::node_type::array:
      node.value = convert_list(*from.as_array());
      break;
    case toml::node_type::table:
      node.value = convert_table(*from.as_table());
      break;
    default:
      node.value = Node::Date{};
      break;
  }
  return node;
}

SyntaxError explain(const toml::parse_error& error) {
  std::string_view text = error.description();
  std::string code = "toml-syntax";
  if (text.find("utf-8") != std::string_view::npos) code = "invalid-utf8";
  if (text.find("cannot redefine") != std::string_view::npos) code = "duplicate-key";
  if (text.find("maximum nested value depth") != std::string_view::npos) {
    code = "nested-too-deep";
    text = "values are nested more than 16 deep";
  }
  if (const auto colon = text.find(": "); text.starts_with("Error while parsing ") && colon < 60) {
    text.remove_prefix(colon + 2);
  }
  std::string message(text);
  if (!message.empty() && message[0] >= 'A' && message[0] <= 'Z')
    message[0] = static_cast<char>(message[0] | 0x20);
  return {.code = std::move(code),
          .message = std::move(message),
          .line = static_cast<int>(error.source().begin.line),
          .column = static_cast<int>(error.source().begin.column)};
}

}  // namespace

const Member* Node::member(std::string_view name) const {
  const auto* table = as<Table>();
  if (table == nullptr) return nullptr;
  const auto found = std::ranges::find(*table, name, &Member::name);
  return found == table->end() ? nullptr : &*found;
}

std::expected<Node, SyntaxError> read_toml(std::string_view text) {
  if (auto error = DotScanner(text).scan()) return std::unexpected(std::move(*error));
  const toml::parse_result result = toml::parse(text);
  if (!result) return std::unexpected(explain(result.error()));
  return convert(result.table());
}

std::string_view kind_name(const Node& node) {
  constexpr std::array<std::string_view, 7> kNames{
      "a boolean", "an integer", "a number", "a string", "a date", "a list", "a table"};
  return kNames.at(node.value.index());
}

std::string quoted(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      (out += kHex[byte >> 4]) += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out += '"';
}

std::string key_text(std::string_view name) {
  const auto bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  return !name.empty() && std::ranges::all_of(name, bare) ? std::string(name) : quoted(name);
}

std::string short_text(const Node& node) {
  constexpr std::size_t kMost = 60;
  if (const auto* value = node.as<bool>()) return *value ? "true" : "false";
  if (const auto* value = node.as<std::int64_t>()) return std::to_string(*value);
  if (const auto* value = node.as<double>()) {
    std::array<char, 32> digits{};
    const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), *value);
    return {digits.data(), end};
  }
  if (const auto* value = node.as<std::string>()) {
    if (value->size() <= kMost) return quoted(*value);
    std::size_t cut = kMost;  // not inside a UTF-8 sequence
    while (cut > 0 && (static_cast<unsigned char>((*value)[cut]) & 0xC0) == 0x80) --cut;
    return quoted(value->substr(0, cut)) + "…";
  }
  if (node.as<Node::List>() != nullptr) return "[…]";
  return node.as<Node::Table>() != nullptr ? "{…}" : "a date";
}

}  // namespace sbx::policy
