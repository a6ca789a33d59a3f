#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "policy/syntax.hpp"

/// The built-in policies as nodes in static data: reading their text anew would cost each start 0.2
/// ms.
namespace sbx::policy {

/// A node in front of its children. Texts are offsets, not pointers: nothing is relocated when sbx
/// starts.
struct PackedNode {
  std::uint16_t name_line = 0;  ///< of a member of a table; 0 in lists
  std::uint16_t name_column = 0;
  std::uint16_t line = 0;
  std::uint16_t column = 0;
  std::uint32_t name = 0;
  std::uint32_t name_size = 0;
  std::uint32_t text = 0;  ///< of a string
  std::uint32_t text_size = 0;
  std::int64_t number = 0;  ///< an integer, a boolean, the bits of a number
  std::uint16_t children = 0;
  std::uint8_t kind = 0;  ///< which alternative of Node::value
};

struct PackedPolicy {
  std::string_view name;
  std::string_view toml;
  std::uint32_t first_node = 0;
};

/// Made from policies/*.toml by embed.cpp.
[[nodiscard]] std::span<const PackedPolicy> packed_policies();
[[nodiscard]] std::span<const PackedNode> packed_nodes();
[[nodiscard]] std::string_view packed_texts();

/// What read_toml() gives for the built-in's text.
[[nodiscard]] Node unpack(const PackedPolicy& policy);

}  // namespace sbx::policy
