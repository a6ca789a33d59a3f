#pragma once

#include "spawn/child_program.hpp"

/// What the child does, in order. A stage is a function that returns when it is done, or reports
/// why it can't be done and ends the process; the last one of a table never returns. Child-safe.
namespace sbx::child {

using StageFunction = void (*)(Program&);

/// Of one tier. Each table ends with null.
struct StageTables {
  const StageFunction* run;      ///< PID 1 of a sandbox with one command
  const StageFunction* holder;   ///< PID 1 of a held sandbox
  const StageFunction* call;     ///< a call's init, until it waits for its program
  const StageFunction* begun;    ///< a call's init, from there on
  const StageFunction* payload;  ///< the command's process, until execve
};
[[nodiscard]] const StageTables& tables_of(TierKind tier);
void walk(const StageFunction* table, Program& program);

// ---- the stages: PID 1 (child.cpp) ----

void drop_supervisor_ends(const Program& program);
/// Called first, and again after the change of ids, which clears the parent-death signal, prctl(2).
void die_with_supervisor(const Program& program);
void join_groups(const Program& program);
void limit_cpus(const Program& program);
void name_host(const Program& program);
/// Meeting point 2.
void wait_for_go(const Program& program);
void take_identity(const Program& program);
void wipe_arguments(const Program& program);
void refuse_dumps(const Program& program);
void open_terminal(Program& program);
void hand_over_descriptors(Program& program);
/// Where directories are copied: until the supervisor has filled them.
void wait_for_copies(const Program& program);
/// Starts the command and serves as its init: meeting points 4 and 5. Never returns.
void run_command(Program& program);

// ---- the same without namespaces (child_keeper.cpp) ----

/// Takes in every process of the sandbox that loses its parent, and leaves the caller's session.
void gather_orphans(const Program& program);
/// Gives up root's rights, and takes the ids with which it can signal the program's processes and
/// they can't signal it.
void become_keeper(const Program& program);
/// The command's process leaves the keeper's uid.
void take_own_uid(const Program& program);
/// Where all have the caller's uid: gives up every capability, and enters a domain of Landlock from
/// which no signal leads out. The program's domain lies in it, so none leads from there to it.
void confine_keeper(Program& program);
/// Makes a process beside the keeper that ends all that the keeper would end, when that or the
/// supervisor has ended: somebody may have killed them.
void start_second(Program& program);
void prepare_second_wall(Program& program);
/// When no process of the sandbox is left.
void end_second(const Program& program);

// ---- the network's part that is made inside (child_network.cpp) ----

/// Meeting point 2a.
void make_network(const Program& program);
/// Returns when the gateway is ready.
void wait_for_network(const Program& program);

// ---- the root (child_root.cpp) ----

/// Builds the root and enters it: meeting point 3.
void build_root(Program& program);
/// For a call: mounts what each PID namespace needs for itself over the held sandbox's: /proc with
/// its masks, /dev/pts.
void renew_mounts(Program& program);

// ---- a holder (child_holder.cpp) ----

/// After its root stands: makes calls until the supervisor is gone. Keeps only
/// `program.channels.control` open. Never returns.
void serve_calls(Program& program);

// ---- the init of a call (child_call.cpp) ----

void come_before_holder(const Program& program);
void report_call(const Program& program);
/// Until the supervisor has moved it into its control group, where it can't do that itself.
void wait_to_be_placed(const Program& program);
void keep_processes(Program& program);
void hold_mounts(Program& program);
void make_wall_ahead(Program& program);

// ---- the command's process (payload.cpp) ----

void own_session(const Program& program);
void connect_streams(const Program& program);
void mark_descriptors(const Program& program);
void enter_working_directory(const Program& program);
void drop_privileges(const Program& program);
/// A call begins there.
void enter_call_directory(const Program& program);
/// The last part of that: the process's own, and what execve could grant.
void drop_capabilities(const Program& program);
void set_limits(const Program& program);
void raise_second_wall(const Program& program);
void reset_signals(const Program& program);
/// Installs the filter, reports "ready", and executes the program. Never returns.
void execute_program(Program& program);

}  // namespace sbx::child
