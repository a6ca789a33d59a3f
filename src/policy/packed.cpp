#include "policy/packed.hpp"

#include <bit>

namespace sbx::policy {
namespace {

Node unpack_at(std::span<const PackedNode> nodes, std::size_t& at) {
  const PackedNode& packed = nodes[at++];
  const auto text = [](std::uint32_t start, std::uint32_t size) {
    return std::string(packed_texts().substr(start, size));
  };
  Node node{.line = packed.line, .column = packed.column};
  switch (packed.kind) {
    case 0:
      node.value = packed.number != 0;
      break;
    case 1:
      node.value = packed.number;
      break;
    case 2:
      node.value = std::bit_cast<double>(packed.number);
      break;
    case 3:
      node.value = text(packed.text, packed.text_size);
      break;
    case 5: {
      Node::List list;
      list.reserve(packed.children);
      for (unsigned i = 0; i < packed.children; ++i) list.push_back(unpack_at(nodes, at));
      node.value = std::move(list);
      break;
    }
    case 6: {
      Node::Table table;
      table.reserve(packed.children);
      for (unsigned i = 0; i < packed.children; ++i) {
        const PackedNode& child = nodes[at];
        table.push_back({.name = text(child.name, child.name_size),
                         .line = child.name_line,
                         .column = child.name_column,
                         .value = unpack_at(nodes, at)});
      }
      node.value = std::move(table);
      break;
    }
    default:
      node.value = Node::Date{};
      break;
  }
  return node;
}

}  // namespace

Node unpack(const PackedPolicy& policy) {
  std::size_t at = policy.first_node;
  return unpack_at(packed_nodes(), at);
}

}  // namespace sbx::policy
