#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cgroup/group.hpp"
#include "plan/plan.hpp"
#include "spawn/spawn.hpp"
#include "supervise/owner_calls.hpp"
#include "supervise/settings.hpp"
#include "supervise/streams/streams.hpp"
#include "supervise/task_limit.hpp"
#include "supervise/tree.hpp"
#include "supervise/unix_sockets.hpp"

/// plan, cgroup, spawn and supervise don't know each other: what one decides, in the terms of
/// another.
namespace sbx::run {

/// How the front end wants to be told.
struct Telling {
  bool capture = false;  ///< keep the command's output for the record
  bool trial = false;    ///< start measurements at once that a short run would not reach
};
[[nodiscard]] supervise::Settings settings_of(const plan::Plan& plan, const Telling& telling);

[[nodiscard]] supervise::OnExceed on_exceed(policy::Exceed exceed);
[[nodiscard]] supervise::OutputForm output_form(const plan::Plan& plan, bool capture);
[[nodiscard]] supervise::StdinFrom stdin_from(plan::StdinMode mode);

/// Whether the plan has a mount of this kind that the program can write.
[[nodiscard]] bool has_writable(const plan::Plan& plan, plan::MountKind kind);
[[nodiscard]] bool memory_is_polled(const plan::Plan& plan, const cgroup::Group* group);
/// How PID 1 enters its control group; `group` may be null.
[[nodiscard]] spawn::Placement placement_in(const cgroup::Group* group);
/// What its supervisor needs of a sandbox or call that runs; `group` may be null.
[[nodiscard]] supervise::Tree::Handles handles_of(const spawn::Sandbox& sandbox,
                                                  TreeCounters* group);
/// The processes of a run.
/// `other_children`: of this process, which it had before the run.
[[nodiscard]] std::unique_ptr<supervise::Tree> tree_of(const spawn::Sandbox& sandbox,
                                                       const plan::Identity& wanted,
                                                       const spawn::MappedIdentity& identity,
                                                       TreeCounters* group,
                                                       std::vector<pid_t> other_children);
/// What the supervisor does for a program with the caller's own uid; nothing for others. Errors:
/// setup.
[[nodiscard]] Result<std::optional<supervise::OwnerCalls>> owner_calls(const plan::Plan& plan);
/// Unix sockets of a program that sees the machine's own; null for others, and where it has none
/// but pairs. `ids`: the program's, where it has a uid of its own. Errors: setup.
[[nodiscard]] Result<std::unique_ptr<supervise::UnixSockets>> unix_sockets(
    const plan::Plan& plan, const spawn::Sandbox& sandbox, const spawn::MappedIdentity& identity);
/// The limit of a program's processes where only the supervisor keeps it; else nothing.
[[nodiscard]] std::optional<supervise::TaskLimit> task_limit(const plan::Plan& plan,
                                                             const spawn::Sandbox& sandbox);
/// Sources of the plan's live grants.
[[nodiscard]] std::vector<std::string> live_directories(const plan::Plan& plan);
/// If the memory budget is too small for the sandbox itself, the run ends before the command
/// starts.
[[nodiscard]] Error explain_small_memory(Error error, const plan::Plan& plan,
                                         const cgroup::Group* group);

}  // namespace sbx::run
