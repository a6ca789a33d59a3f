#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <sbx/outcome.hpp>

#include "host/host.hpp"
#include "policy/policy.hpp"

/// What this machine can enforce, found by trying it in a child process, never by comparing
/// versions. Nothing is left of a trial.
namespace sbx::doctor {

enum class State : std::uint8_t { ok, weaker, missing };

/// The budgets that `examine_means` tells of, in its order.
inline constexpr std::array<std::string_view, 5> kBudgets = {
    "limits.memory", "limits.cpu_time", "limits.cpus", "limits.processes", "limits.disk"};

/// One line of the answer.
struct Finding {
  std::string name;  ///< "user namespaces", "python3", a policy
  State state = State::ok;
  std::string fact;                ///< what was found
  std::string consequence;         ///< what it means for runs; empty where all is well
  std::string cure;                ///< empty where there is none
  std::string code;                ///< of a missing policy: the error's code
  std::vector<Degraded> degraded;  ///< of a policy: what its runs list
  std::vector<std::string> means;  ///< of a policy that runs: what enforces each of kBudgets
};

/// What the kernel and the account give: namespaces, filters, file systems, groups.
[[nodiscard]] std::vector<Finding> examine_machine(const host::Host& host);
/// The interpreters of scripts, each with the prefix that would be bound for it.
[[nodiscard]] std::vector<Finding> examine_interpreters(const host::Host& host,
                                                        const policy::Policy& policy);
/// Runs `true` under a policy, in the current directory, as `sbx run` would.
[[nodiscard]] Finding try_policy(const host::Host& host, const policy::Policy& policy);

/// The budgets and walls of runs, each by its own means or by weaker ones, as the trials of policies
/// found.
[[nodiscard]] std::vector<Finding> examine_means(const std::vector<Finding>& policies);

/// "ok", "weaker", "missing".
[[nodiscard]] std::string_view state_name(State state);

}  // namespace sbx::doctor
