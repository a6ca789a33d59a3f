#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include <sbx/units.hpp>

/// The budgets of one run. This list is the only one: the policy's `limits`, the plan, the control
/// group, the supervisor and the record's `limits` are made from it, so that none of them can
/// forget a budget.
///
/// X(name, type, initial, form): `limits.name` of the policy, of `type`; `initial` is what a run
/// without a policy has; `form` is how the record shows it (src/record/record.cpp).
#define SBX_BUDGETS(X)                                                   \
  X(wall_time, Milliseconds, {}, time_or_null)                           \
  X(cpu_time, Milliseconds, {}, time)                                    \
  X(cpus, double, 1, number)                                             \
  X(memory, Bytes, {}, size)                                             \
  X(processes, std::uint64_t, 0, number)                                 \
  X(file_size, Bytes, {std::numeric_limits<std::uint64_t>::max()}, size) \
  X(disk, Bytes, {}, size)                                               \
  X(disk_files, std::uint64_t, 0, number)                                \
  X(grace, Milliseconds, {}, not_shown)

namespace sbx {

/// 0 means unlimited, but for `file_size`: there 0 lets no file grow. `cpus` counts CPUs. `grace`
/// is the time between SIGTERM and SIGKILL at the end of `wall_time`.
struct Budgets {
#define SBX_BUDGET(name, type, initial, form) type name = initial;
  SBX_BUDGETS(SBX_BUDGET)
#undef SBX_BUDGET
};

/// Calls `use` with the value of the budget of that name; does nothing if there is none.
template <class Use>
void with_budget(const Budgets& budgets, std::string_view wanted, Use use) {
#define SBX_BUDGET(name, type, initial, form) \
  if (wanted == #name) return use(budgets.name);
  SBX_BUDGETS(SBX_BUDGET)
#undef SBX_BUDGET
}

}  // namespace sbx
