#include "plan/filter/assembler.hpp"

#include <linux/seccomp.h>

#include <algorithm>
#include <bit>
#include <cstddef>

namespace sbx::plan {
namespace {

// Conditional jump offsets are eight bits wide. Leaves room for two relays in front of the jump
// itself.
constexpr std::uint32_t kReach = 253;

constexpr bool kLittle = std::endian::native == std::endian::little;
constexpr std::uint32_t low_word(unsigned argument) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * argument +
                                    (kLittle ? 0 : 4));
}
constexpr std::uint32_t high_word(unsigned argument) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * argument +
                                    (kLittle ? 4 : 0));
}
constexpr std::uint32_t low(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}
constexpr std::uint32_t high(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}

}  // namespace

Assembler::Label Assembler::push(sock_filter instruction) {
  if (reversed_.size() >= kMostInstructions) {
    overflowed_ = true;
    return static_cast<Label>(reversed_.size() - 1);
  }
  reversed_.push_back(instruction);
  return static_cast<Label>(reversed_.size() - 1);
}

Assembler::Label Assembler::give_back(std::uint32_t value) {
  Return* known = std::find_if(returns_.begin(), returns_.begin() + return_count_,
                               [&](const Return& entry) { return entry.value == value; });
  const bool found = known != returns_.begin() + return_count_;
  if (found && reversed_.size() - known->label < kReach / 2) return known->label;
  const Label label = push(BPF_STMT(BPF_RET | BPF_K, value));
  if (found) {
    known->label = label;
  } else if (return_count_ < returns_.size()) {
    returns_[return_count_++] = {value, label};
  }
  return label;
}

Assembler::Label Assembler::within_reach(Label target) {
  if (reversed_.size() - target <= kReach) return target;
  if (BPF_CLASS(reversed_[target].code) == BPF_RET) return push(reversed_[target]);
  return push(
      BPF_STMT(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(reversed_.size()) - 1 - target));
}

Assembler::Label Assembler::jump_if(std::uint16_t op, std::uint32_t operand, Label yes, Label no) {
  no = within_reach(no);
  yes = within_reach(yes);
  const std::size_t here = reversed_.size();
  return push(sock_filter{.code = static_cast<std::uint16_t>(BPF_JMP | BPF_K | op),
                          .jt = static_cast<std::uint8_t>(here - 1 - yes),
                          .jf = static_cast<std::uint8_t>(here - 1 - no),
                          .k = operand});
}

// Makes the next pushed instruction fall through to `target`.
void Assembler::fall_to(Label target) {
  const std::size_t here = reversed_.size();
  if (here - 1 == target) return;
  if (BPF_CLASS(reversed_[target].code) == BPF_RET) {
    push(reversed_[target]);
  } else {
    push(BPF_STMT(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(here - 1 - target)));
  }
}

Assembler::Label Assembler::load(std::uint32_t offset, Label next) {
  fall_to(next);
  return push(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
}

Assembler::Label Assembler::mask(std::uint32_t mask, Label next) {
  fall_to(next);
  return push(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
}

Assembler::Label Assembler::condition(const Condition& wanted, Label yes, Label no) {
  const bool masked = wanted.compare == Compare::masked_equal;
  const std::uint64_t width =
      wanted.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << wanted.bits) - 1;
  const std::uint64_t significant = width & (masked ? wanted.mask : ~std::uint64_t{0});
  std::uint16_t op = BPF_JEQ;
  if (wanted.compare == Compare::greater) op = BPF_JGT;
  if (wanted.compare == Compare::greater_equal) op = BPF_JGE;

  Label next = jump_if(op, low(wanted.value), yes, no);
  if (low(significant) != 0xffffffff) next = mask(low(significant), next);
  next = load(low_word(wanted.argument), next);
  if (high(significant) == 0) return next;

  // The upper halves decide unless they are equal.
  next = jump_if(BPF_JEQ, high(wanted.value), next, no);
  if (op != BPF_JEQ) next = jump_if(BPF_JGT, high(wanted.value), yes, next);
  if (high(significant) != 0xffffffff) next = mask(high(significant), next);
  return load(high_word(wanted.argument), next);
}

std::vector<sock_filter> Assembler::finish() && {
  std::ranges::reverse(reversed_);
  return std::move(reversed_);
}

}  // namespace sbx::plan
