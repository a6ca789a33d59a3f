#include "plan/filter/tree.hpp"

#include <ranges>

namespace sbx::plan {

bool Condition::holds(const std::uint64_t (&arguments)[6]) const {
  std::uint64_t actual = arguments[argument];
  if (bits < 64) actual &= (std::uint64_t{1} << bits) - 1;
  switch (compare) {
    case Compare::equal:
      return actual == value;
    case Compare::greater:
      return actual > value;
    case Compare::greater_equal:
      return actual >= value;
    case Compare::masked_equal:
      return (actual & mask) == value;
  }
  return false;
}

Tree::Id Tree::leaf(Action action) {
  nodes_.push_back({.is_leaf = true, .action = action});
  return static_cast<Id>(nodes_.size() - 1);
}

Tree::Id Tree::branch(Condition condition, Id yes, Id no) {
  nodes_.push_back({.is_leaf = false, .condition = condition, .yes = yes, .no = no});
  return static_cast<Id>(nodes_.size() - 1);
}

Tree::Id Tree::any(std::span<const Condition> conditions, Id yes, Id no) {
  for (const Condition& condition : std::views::reverse(conditions))
    no = branch(condition, yes, no);
  return no;
}

Action Tree::evaluate(Id root, const std::uint64_t (&arguments)[6]) const {
  while (!nodes_[root].is_leaf) {
    root = nodes_[root].condition.holds(arguments) ? nodes_[root].yes : nodes_[root].no;
  }
  return nodes_[root].action;
}

}  // namespace sbx::plan
