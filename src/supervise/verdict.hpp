#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "supervise/meters/budget_watch.hpp"
#include "supervise/settings.hpp"

/// What the end of a run means, and the words for it.
namespace sbx::supervise {

/// What was measured when it was decided.
struct Measured {
  std::uint64_t cpu_microseconds = 0;
  BudgetsSeen budgets;
  bool file_size_met = false;  ///< a file is as large as it may be, and the command failed
  std::string stream;          ///< "stdout": which one was over its cap
};

/// The verdict of a main process that ended without sbx's doing. SIGXCPU, and the SIGKILL of a hard
/// RLIMIT_CPU, count as the CPU budget only if that much was really used.
[[nodiscard]] Verdict verdict_of_status(int wait_status, const Settings& settings, CpuTime used);

/// One sentence for people and agents.
[[nodiscard]] std::string detail_of(const Verdict& verdict, const Settings& settings,
                                    const Measured& measured);

/// Limits for whose meeting there is evidence.
[[nodiscard]] std::vector<LimitMet> limits_met(const Verdict& verdict, const Settings& settings,
                                               const Measured& measured);

}  // namespace sbx::supervise
