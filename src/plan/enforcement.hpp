#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.hpp"

/// Which of the requested rules this machine can't enforce.
namespace sbx::plan {

/// Landlock's right to truncate came with ABI 3 (Linux 6.2).
inline constexpr int kLandlockTruncation = 3;
/// Its scopes for signals and abstract sockets came with ABI 6 (Linux 6.12).
inline constexpr int kLandlockScopes = 6;

/// Why memory is polled where the kernel was booted without its controller, as Raspberry Pi OS
/// does.
inline constexpr std::string_view kMemoryIsOff =
    "the kernel's memory controller is switched off (\"memory\" is not in the root's "
    "cgroup.controllers)";

/// True if the program writes into directories of the host.
[[nodiscard]] bool has_live_grant(const Plan& plan);

/// Withdraws the right to make FIFOs and sockets from every mount that contains a live grant
/// without `special`. Landlock rules add up on the way from the root: what is allowed above is
/// allowed below. Without namespaces the private places lie elsewhere: `live_grants` are what can
/// contain one there.
enum class Around : std::uint8_t { all_mounts, live_grants };
void keep_special_files_out(Plan& plan, Around around);
/// Moves TMPDIR out of /tmp if /tmp allows no sockets: programs make theirs there.
void move_temporary_files(Plan& plan);
/// True if there is a live grant without `special` and Landlock can't keep FIFOs and sockets out of
/// it.
[[nodiscard]] bool special_files_reach_host(const Plan& plan);

/// True where neither the kernel nor a control group holds the program to limits.processes.
[[nodiscard]] bool no_limit_of_processes(const Plan& plan, const host::Host& host);
/// What it means that the supervisor counts them instead.
inline constexpr const char* kCountsTasks =
    "sbx counts before each new process and thread: one can be refused too early while others "
    "begin, and a program with reapers of its own can exceed it";
/// In a session, whose calls have supervisors of their own.
inline constexpr const char* kCountsTasksOfCalls =
    "sbx counts before each new process and thread: one can be refused too early while others "
    "begin; calls that make some at the same moment can exceed it by one each, and a program with "
    "reapers of its own by more";
inline constexpr const char* kCountsNone = "processes beyond the limit are seen, and not refused";

/// Adds to `degraded` the second lines of defence that this machine lacks.
void note_machine(const host::Host& host, Plan& plan);
/// Of that: what live grants keep by weaker means.
void note_live_grants(Plan& plan);
/// And the memory of the tree.
void note_memory(Plan& plan);

/// Checks --require against everything in `degraded`. Errors: usage "unknown-requirement", host
/// "requirement-not-met".
[[nodiscard]] Status check_requirements(const std::vector<std::string>& required, const Plan& plan);

}  // namespace sbx::plan
