#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <sbx/outcome.hpp>

#include "host/host.hpp"
#include "policy/policy.hpp"

/// What this machine can enforce, determined by trying it in a child process, never by comparing
/// versions. Trials leave nothing behind.
namespace sbx::doctor {

enum class State : std::uint8_t { ok, weaker, missing };

/// The budgets that `examine_means` reports, in its order.
inline constexpr std::array<std::string_view, 5> kBudgets = {
    "limits.memory", "limits.cpu_time", "limits.cpus", "limits.processes", "limits.disk"};

/// One line of the answer.
struct Finding {
  std::string name;  ///< "user namespaces", "python3", a policy
  State state = State::ok;
  std::string fact;                ///< what was found
  std::string consequence;         ///< effect on runs; empty if all is well
  std::string cure;                ///< the fix; empty if there is none
  std::string code;                ///< for a missing policy: the error's code
  std::vector<Degraded> degraded;  ///< for a policy: the `degraded` list of its runs
  std::vector<std::string> means;  ///< for a policy that runs: what enforces each of kBudgets
};

/// Features of kernel and account: namespaces, filters, file systems, groups.
[[nodiscard]] std::vector<Finding> examine_machine(const host::Host& host);
/// Where sbx keeps what outlives a run, and where sessions are. Nothing is made.
[[nodiscard]] std::vector<Finding> examine_directories(const host::Host& host);
/// The ways to wall a program off, strongest first, up to the first that works here; from the
/// findings of `examine_machine`. `try_landlock`: asked where no namespaces can be made, for a
/// program with or without a uid of its own.
[[nodiscard]] std::vector<Finding> examine_isolation(const std::vector<Finding>& machine,
                                                     bool has_own_uid,
                                                     const std::function<Finding()>& try_landlock);
/// The script interpreters, each with the prefix that a run would bind for it; none under an
/// emulator of single programs.
[[nodiscard]] std::vector<Finding> examine_interpreters(const host::Host& host,
                                                        const policy::Policy& policy);
/// Runs `true` under a policy, in the current directory, as `sbx run` would.
[[nodiscard]] Finding try_policy(const host::Host& host, const policy::Policy& policy);

/// The budgets and protections of runs, each with its usual or a weaker mechanism, from the trials
/// of the policies.
[[nodiscard]] std::vector<Finding> examine_means(const std::vector<Finding>& policies);

/// "ok", "weaker", "missing".
[[nodiscard]] std::string_view state_name(State state);

}  // namespace sbx::doctor
