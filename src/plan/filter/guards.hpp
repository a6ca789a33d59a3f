#pragma once

#include <cstdint>

#include "plan/filter/filter.hpp"
#include "plan/filter/table.hpp"
#include "plan/filter/tree.hpp"

/// The built-in conditions on arguments. They compare only the bits that the kernel reads.
namespace sbx::plan {

struct GuardRequest {
  const Call& call;
  const FilterContext& context;
  /// Bit k: an allow rule named the exact value of argument k, so the guard skips its own check of
  /// it.
  unsigned vouched = 0;
  /// The call was allowed by its own name, not by a group.
  bool by_name = false;
  /// clone: processes may be created; otherwise `spawn_refusal` is the reason.
  bool spawns = true;
  Action spawn_refusal{};
};

/// The guard's decision for an admitted call.
[[nodiscard]] Tree::Id guard_tree(Tree& tree, const GuardRequest& request);
/// False: the guard admits every call in this context, so a hot call needs no rule.
[[nodiscard]] bool may_refuse(ArgumentGuard guard, const FilterContext& context);

/// Index of the only 16-bit argument, a file mode.
[[nodiscard]] unsigned mode_argument(const Call& call);

inline constexpr std::uint32_t kNamespaceFlags =
    0x7E020000;  ///< CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET

}  // namespace sbx::plan
