#pragma once

#include <linux/audit.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "bpf_evaluator.hpp"
#include "plan/filter/filter.hpp"
#include "plan/filter/table.hpp"

namespace sbx::test {

using Arguments = std::array<std::uint64_t, 6>;
/// Values for an argument; the kernel's constants are ints.
using Words = std::initializer_list<std::uint64_t>;

inline constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW;
inline constexpr std::uint32_t kNotify = SECCOMP_RET_USER_NOTIF;
inline constexpr std::uint32_t kKill = SECCOMP_RET_KILL_PROCESS;
inline constexpr std::uint32_t quiet_answer(int error) {
  return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
}

/// The context of a machine with a cgroup and a listener.
inline constexpr plan::FilterContext kPlain{
    .listener = true, .affinity_is_budget = false, .unix_sockets = true, .memory_is_polled = false};

inline policy::Syscalls syscalls(policy::SyscallBase base = policy::SyscallBase::default_) {
  policy::Syscalls result;
  result.base = {base, {.file = "p.toml", .line = 3, .layer = Layer::file}};
  result.denied.value = policy::DeniedCall::errno_;
  return result;
}

inline policy::Sourced<std::string> item(std::string name, int line = 7) {
  return {std::move(name), {.file = "p.toml", .line = line, .column = 1, .layer = Layer::file}};
}

inline policy::Sourced<policy::SyscallRule> rule(
    std::string name, int argument, policy::RuleOperator op, std::vector<std::uint64_t> values,
    policy::RuleAction action = policy::RuleAction::allow, int line = 9) {
  return {{.name = std::move(name),
           .has_condition = true,
           .argument = argument,
           .op = op,
           .values = std::move(values),
           .symbols = {},
           .action = action,
           .reason = ""},
          {.file = "p.toml", .line = line, .column = 1, .layer = Layer::file}};
}

inline int number_of(std::string_view name) {
  const plan::Call* call = plan::find_call(name);
  return call == nullptr ? -1 : call->number;
}

/// False for a call that only other architectures have.
inline bool is_here(std::string_view name) {
  return plan::find_absent_call(name) == nullptr;
}

inline BpfResult ask(const std::vector<sock_filter>& program, std::uint32_t number,
                     const Arguments& arguments = {}, std::uint32_t arch = plan::kAuditArch) {
  seccomp_data data{};
  data.nr = static_cast<int>(number);
  data.arch = arch;
  for (std::size_t i = 0; i < 6; ++i) data.args[i] = arguments[i];
  return run_bpf(program, data).value_or(BpfResult{.action = 0xdeadbeef});
}

inline std::uint32_t ask(const plan::Filter& filter, std::string_view name,
                         const Arguments& arguments = {}) {
  return ask(filter.program, static_cast<std::uint32_t>(number_of(name)), arguments).action;
}

inline plan::Refusal explain(const plan::Filter& filter, std::string_view name,
                             const Arguments& arguments = {}) {
  std::uint64_t plain[6];
  for (std::size_t i = 0; i < 6; ++i) plain[i] = arguments[i];
  return filter.explain(number_of(name), plain);
}

}  // namespace sbx::test
