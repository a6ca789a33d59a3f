#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policy/quoting.hpp"
#include "policy/syntax_errors.hpp"

/// TOML text as plain nodes; toml++ is known to syntax.cpp only.
namespace sbx::policy {

struct Member;

/// One value of a TOML text. Lines and columns count from 1; 0 is unknown.
struct Node {
  /// A date or time: no key has this type, so its value is not kept.
  struct Date {};
  using List = std::vector<Node>;
  using Table = std::vector<Member>;

  std::variant<bool, std::int64_t, double, std::string, Date, List, Table>
      value;  // no initialiser: it would need Member here
  int line = 0;
  int column = 0;

  template <class T>
  [[nodiscard]] const T* as() const {
    return std::get_if<T>(&value);
  }
  /// The member of a table with this name, or null.
  [[nodiscard]] const Member* member(std::string_view name) const;
};

struct Member {
  std::string name;
  int line = 0;
  int column = 0;
  Node value;
};

/// Reads a whole text; the first error ends it.
[[nodiscard]] std::expected<Node, SyntaxError> read_toml(std::string_view text);

/// What a node is called in messages: "an integer", "a list".
[[nodiscard]] std::string_view kind_name(const Node& node);
/// "expected a size, got 5 (an integer)".
[[nodiscard]] std::string expected_text(std::string_view wanted, const Node& node);
/// The value as TOML on one line, shortened to what a message can carry.
[[nodiscard]] std::string short_text(const Node& node);

}  // namespace sbx::policy
