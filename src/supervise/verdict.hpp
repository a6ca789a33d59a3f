#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "supervise/meters/budget_watch.hpp"
#include "supervise/settings.hpp"

/// Interprets the end of a run and describes it.
namespace sbx::supervise {

/// The measurements at the time of the decision.
struct Measured {
  bool by_session = false;  ///< the session found that its budget is spent, and chose this call
  std::uint64_t cpu_microseconds = 0;
  BudgetsSeen budgets;
  bool file_size_met = false;  ///< a file has the maximum size, and the command failed
  std::string stream;          ///< the stream that exceeded its cap: "stdout"
};

/// The verdict for a main process that sbx didn't end. SIGXCPU, and the SIGKILL of a hard
/// RLIMIT_CPU, mean that the CPU budget is exceeded only if that much was really used.
[[nodiscard]] Verdict verdict_of_status(int wait_status, const Settings& settings, CpuTime used);

/// One sentence for people and agents.
[[nodiscard]] std::string detail_of(const Verdict& verdict, const Settings& settings,
                                    const Measured& measured);

/// Limits that were demonstrably reached.
[[nodiscard]] std::vector<LimitMet> limits_met(const Verdict& verdict, const Settings& settings,
                                               const Measured& measured);

}  // namespace sbx::supervise
