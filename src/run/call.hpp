#pragma once

#include <functional>
#include <string>
#include <vector>

#include "run/held_sandbox.hpp"
#include "run/launch.hpp"
#include "supervise/supervisor.hpp"

namespace sbx::run {

/// A call whose program is an interpreter that stays. `request.program` has its language and
/// arguments.
struct Interpreter {
  std::vector<int> descriptors;  ///< that it gets from 3 on
  /// Who reads what it writes, in place of the supervisor: its output belongs to cells.
  std::function<void(UniqueFd out, UniqueFd err)> take_output;
  /// Whether its output is still being delivered, after its end; called each turn of the loop from
  /// then on.
  std::function<bool()> delivers;
};

/// What a call needs and is the same for all, made before somebody waits for it.
struct CallAhead {
  spawn::WaitingInit init;  ///< in the call's group; invalid where the session has no room
  policy::Policy policy;    ///< copies of the session's
  plan::Plan plan;
};

/// Who has most of a session's processes.
struct MostProcesses {
  std::string who;   ///< "context python"; empty: unknown
  std::string cure;  ///< the command that ends them
  std::uint64_t count = 0;
};

/// What a session's network did not let through, or could not.
struct NetworkTrouble {
  std::vector<Denial> refused;
  std::vector<NetworkFailure> failed;
};

/// What an interpreter's supervisor learns of one cell.
struct OfCell {
  std::function<NetworkTrouble()> attempts;  ///< to reach a network since it was asked last
  /// Gives a cell that failed its notes and hints. `cell`: how it ended, what it wrote last, what
  /// it was refused; `directory`: where it began, from the context's on; `operands`: as HintStyle.
  std::function<void(Outcome& cell, const std::string& directory,
                     const std::vector<std::string>& operands)>
      explain;
};

/// What joins one call to its session.
struct CallTies {
  std::string session;             ///< its name, for messages
  cgroup::Group* group = nullptr;  ///< the call's own; null: counted by process
  /// What was made ahead; taken. Null: it is made now.
  CallAhead* ahead = nullptr;
  /// sbx's own program for what runs inside as code of its own (inside.hpp): the words of `program`
  /// are its arguments; -1: none.
  int image = -1;
  const Interpreter* interpreter = nullptr;
  /// Its output goes to the session's log, which keeps a part: no cap, unless output.exceed ends
  /// the call.
  bool is_logged = false;
  /// Standard input is a socket to which the session lets others write.
  bool input_is_sent = false;
  /// Called when its init exists, with the init's pid.
  std::function<void(pid_t init)> began;
  /// Lets something of the session's live in the call's loop, for as long as the supervisor does.
  std::function<Status(EventLoop& loop, supervise::Supervisor& supervisor)> live_in;
  /// An interpreter's supervisor is given what tells of its cells.
  std::function<void(OfCell of_cell)> take_of_cell;
  /// A rule with many ports: the session opens the place before connect(2) continues.
  std::function<void(const policy::Address& address, std::uint16_t port)> expect;
  /// Takes the call's mount namespace, to close it when nobody waits for the call's end any more.
  std::function<void(UniqueFd mounts)> keep_mounts;
  /// Called at the end: what happened in the session's network meanwhile.
  std::function<NetworkTrouble()> trouble;
  /// Asked where limits.processes is used up.
  std::function<MostProcesses()> most_processes;
};

/// For the client of a call, whose working directory decides what --stdin FILE names: opens it, and
/// makes `program` read descriptor 0, which is then to be sent as that. Invalid without --stdin
/// FILE. Errors: usage, host.
[[nodiscard]] Result<UniqueFd> open_stdin(plan::RunRequest& program);

[[nodiscard]] CallAhead make_ahead(const HeldSandbox& held, cgroup::Group* group);

/// Runs one call in a held sandbox and supervises it to its end. The process is the call's, as with
/// launch(): forked from the session's, which made the sandbox. Of `request` it uses overrides
/// (which may only narrow), program, capture, id, readers, parent, cancel and events.
[[nodiscard]] Answer call(const HeldSandbox& held, const Request& request, const CallTies& ties,
                          const Sinks& sinks = {});

}  // namespace sbx::run
