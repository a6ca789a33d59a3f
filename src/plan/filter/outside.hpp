#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/filter/table.hpp"
#include "plan/filter/tree.hpp"
#include "policy/policy.hpp"

/// What no policy can allow where the program is in the machine's own namespaces: calls that reach
/// other processes or the machine's own objects there, without Landlock's say.
namespace sbx::plan {

/// The refusal of a call that is refused altogether; nothing for the others.
[[nodiscard]] std::optional<Action> refused_outside(const Call& call);

/// The argument that must be 0, the calling process itself; nothing for calls that name no process.
/// The kernel lets a program change the priority and CPUs of its keeper, whose effective uid is the
/// program's own (set_one_prio_perm, check_same_owner).
[[nodiscard]] std::optional<unsigned> own_process_argument(const Call& call);

/// The entries of syscalls.allow that have no effect there.
[[nodiscard]] std::vector<std::string> allowed_in_vain(const policy::Syscalls& syscalls);

}  // namespace sbx::plan
