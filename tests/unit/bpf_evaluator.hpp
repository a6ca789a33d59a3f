#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

/// Runs a seccomp program as the kernel does: takes call and arguments, returns the action.
namespace sbx::test {

struct BpfResult {
  std::uint32_t action = 0;          ///< SECCOMP_RET_* with its data
  bool looked_at_arguments = false;  ///< the kernel's always-allow bitmap can't give such an answer
  int steps = 0;
};

/// Rejects what the kernel's checker rejects: a jump out of the program, a load outside the data,
/// an unknown instruction, a missing return.
inline bool is_valid_bpf(const std::vector<sock_filter>& program) {
  if (program.empty() || program.size() > BPF_MAXINSNS) return false;
  for (std::size_t at = 0; at < program.size(); ++at) {
    const sock_filter& i = program[at];
    const std::size_t left = program.size() - at - 1;
    switch (i.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (i.k % 4 != 0 || i.k >= sizeof(seccomp_data)) return false;
        break;
      case BPF_ALU | BPF_AND | BPF_K:
      case BPF_RET | BPF_K:
        break;
      case BPF_JMP | BPF_JA:
        if (i.k >= left) return false;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
      case BPF_JMP | BPF_JGE | BPF_K:
      case BPF_JMP | BPF_JGT | BPF_K:
      case BPF_JMP | BPF_JSET | BPF_K:
        if (i.jt >= left || i.jf >= left) return false;
        break;
      default:
        return false;
    }
  }
  return BPF_CLASS(program.back().code) == BPF_RET;
}

inline std::optional<BpfResult> run_bpf(const std::vector<sock_filter>& program,
                                        const seccomp_data& data) {
  BpfResult result;
  std::uint32_t accumulator = 0;
  for (std::size_t at = 0; at < program.size(); ++at) {
    const sock_filter& i = program[at];
    ++result.steps;
    switch (i.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (i.k + 4 > sizeof data) return std::nullopt;
        std::memcpy(&accumulator, reinterpret_cast<const char*>(&data) + i.k, 4);
        if (i.k >= offsetof(seccomp_data, instruction_pointer)) result.looked_at_arguments = true;
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        accumulator &= i.k;
        break;
      case BPF_RET | BPF_K:
        result.action = i.k;
        return result;
      case BPF_JMP | BPF_JA:
        at += i.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        at += accumulator == i.k ? i.jt : i.jf;
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        at += accumulator >= i.k ? i.jt : i.jf;
        break;
      case BPF_JMP | BPF_JGT | BPF_K:
        at += accumulator > i.k ? i.jt : i.jf;
        break;
      case BPF_JMP | BPF_JSET | BPF_K:
        at += (accumulator & i.k) != 0 ? i.jt : i.jf;
        break;
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace sbx::test
