#pragma once

#include <cstdint>

#include "plan/filter/filter.hpp"
#include "plan/filter/table.hpp"
#include "plan/filter/tree.hpp"

/// The built-in conditions on arguments. All compare only the bits that the kernel reads.
namespace sbx::plan {

struct GuardRequest {
  const Call& call;
  const FilterContext& context;
  /// Bit k: an allow rule named the very value of argument k, so the guard's own check of it is
  /// left out.
  unsigned vouched = 0;
  /// The call was allowed by its own name, not by a group.
  bool by_name = false;
  /// clone: may make processes; else `spawn_refusal` says why not.
  bool spawns = true;
  Action spawn_refusal{};
};

/// The decision of its guard for an admitted call.
[[nodiscard]] Tree::Id guard_tree(Tree& tree, const GuardRequest& request);
/// False: the guard admits every call in this context. A hot call then needs no rule of its own.
[[nodiscard]] bool may_refuse(Guard guard, const FilterContext& context);

/// Position of the only argument of 16 bits, the mode of a file.
[[nodiscard]] unsigned mode_argument(const Call& call);

inline constexpr std::uint32_t kNamespaceFlags =
    0x7E020000;  ///< CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET

}  // namespace sbx::plan
