#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/filter/filter.hpp"
#include "plan/filter/table.hpp"
#include "plan/filter/tree.hpp"

/// What no policy can allow where the program is in the machine's own namespaces: calls that reach
/// other processes or the machine's own objects there, without Landlock's say.
namespace sbx::plan {

/// The refusal of a call that is refused altogether; nothing for the others.
[[nodiscard]] std::optional<Action> refused_outside(const Call& call, const FilterContext& context);

/// What must hold for a call to name the calling process itself, all of it; nothing for calls that
/// name no process. The kernel lets a program change the priority, CPUs and limits of processes of
/// its uid, which its keeper has too, as the effective one or as all (set_one_prio_perm,
/// check_same_owner, check_prlimit_permission).
[[nodiscard]] std::vector<Condition> names_itself(const Call& call);

/// What must not hold: a lease keeps whoever opens the file waiting, a directory that is watched
/// tells what others do there, and FilterContext::truncates_unasked.
[[nodiscard]] std::vector<Condition> refused_forms(const Call& call, const FilterContext& context);

/// Requests of ioctl(2) that change nothing of a file which its owner could not change through any
/// descriptor: those of terminals, sockets and copies. Others set attributes of inodes, make
/// snapshots or seal files, through descriptors that may only read.
[[nodiscard]] std::vector<Condition> harmless_requests();

/// The calls that the supervisor answers where the program has the caller's own uid: what only the
/// owner of a file may do and Landlock does not see.
[[nodiscard]] std::span<const int> served_outside();

/// Those that make, connect and bind unix sockets (FilterContext::named_sockets). Landlock sees
/// neither where a socket is connected to nor abstract names that are bound.
[[nodiscard]] std::span<const int> served_sockets();

/// Those that make a process or thread, which it answers where no limit of the kernel's counts
/// them.
[[nodiscard]] std::span<const int> served_tasks();

/// The entries of syscalls.allow that have no effect there.
[[nodiscard]] std::vector<std::string> allowed_in_vain(const Filter& filter);

}  // namespace sbx::plan
