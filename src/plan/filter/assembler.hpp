#pragma once

#include <linux/filter.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/filter/tree.hpp"

/// Assembles classic BPF from the last instruction to the first: all jumps go forward, so targets
/// are always known.
namespace sbx::plan {

class Assembler {
 public:
  /// Distance from the end of the program.
  using Label = std::uint32_t;
  /// BPF_MAXINSNS: the kernel's limit.
  static constexpr std::size_t kMostInstructions = 4096;

  Assembler() { reversed_.reserve(512); }

  /// An instruction that returns `value`.
  Label give_back(std::uint32_t value);
  /// `if (A op operand) goto yes; else goto no;`
  Label jump_if(std::uint16_t op, std::uint32_t operand, Label yes, Label no);
  /// A = the word at `offset` of struct seccomp_data; continues at `next`.
  Label load(std::uint32_t offset, Label next);
  /// A &= mask; continues at `next`.
  Label mask(std::uint32_t mask, Label next);
  /// A decision tree; `value_of` gives the BPF return value of a leaf.
  template <class ValueOf>
  Label tree(const Tree& tree, Tree::Id root, ValueOf value_of);

  /// The program exceeds the kernel's limit and is void.
  [[nodiscard]] bool overflowed() const { return overflowed_; }
  [[nodiscard]] std::vector<sock_filter> finish() &&;

 private:
  Label push(sock_filter instruction);
  void fall_to(Label target);
  Label within_reach(Label target);
  Label condition(const Condition& condition, Label yes, Label no);

  struct Return {
    std::uint32_t value;
    Label label;
  };
  std::vector<sock_filter> reversed_;
  std::array<Return, 16> returns_{};  ///< the latest instruction for each value returned so far
  std::size_t return_count_ = 0;
  std::vector<Label> labels_;  ///< the nodes of the tree
  bool overflowed_ = false;
};

template <class ValueOf>
Assembler::Label Assembler::tree(const Tree& tree, Tree::Id root, ValueOf value_of) {
  labels_.assign(root + 1, 0);
  const auto label_of = [&](Tree::Id id) {
    // Each use of a leaf gets a copy nearby: it is one instruction, as a long jump would be.
    return tree.at(id).is_leaf ? give_back(value_of(tree.at(id).action)) : labels_[id];
  };
  for (Tree::Id id = 0; id <= root; ++id) {
    const Tree::Node& node = tree.at(id);
    if (node.is_leaf) continue;
    const Label no = label_of(node.no);
    const Label yes = label_of(node.yes);
    labels_[id] = condition(node.condition, yes, no);
  }
  return label_of(root);
}

}  // namespace sbx::plan
