#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/process.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "protocol/answers.hpp"
#include "run/launch.hpp"

/// A sandbox that stays: its process holds it, takes calls over a socket and ends with it.
namespace sbx::session {

/// A session's process, while it starts.
struct Starting {
  process::Child process;
  UniqueFd answer;  ///< readable once it takes calls, or can't
};
using Tell = std::function<void(const policy::Findings&)>;
/// Forks the session's process. `name`: empty for one of its own making. `request`: its policies,
/// overrides, program (with `hold`), variables, and in `bring_out.keep` the set in which changes
/// are kept at an end that no command asked for. `sinks`: of the start. What goes wrong in the
/// start is told in that process, by `tell`. The session stops when the process of the pidfd
/// `request.parent` ends, if there is one. `before`: called in the new process. Call it while this
/// process is single-threaded and knows nothing else: the sandbox's PID 1 is a copy of a copy of
/// it. Errors: usage "bad-session-name", host.
[[nodiscard]] Result<Starting> fork_session(std::string name, run::Request request,
                                            run::Sinks sinks, Tell tell,
                                            const std::function<void()>& before);
/// What it says, once that is readable. An error: its process ends. Errors: those of the start,
/// internal "session-gone" (it was killed).
[[nodiscard]] Result<protocol::SessionFacts> facts_from_start(const Starting& starting);

struct StartAnswer {
  int status = 0;  ///< 0: it takes calls
  protocol::SessionFacts facts{};
  /// The first one, which was told. None where a signal cancelled the start.
  std::optional<Error> error{};
};
/// Both, for a command: waits, and a signal that would end this process ends the start, with the
/// status of a cancelled run and no error. What goes wrong is told by `tell`, and the exit status
/// returned.
[[nodiscard]] StartAnswer start(std::string name, run::Request request, const run::Sinks& sinks,
                                const Tell& tell);

}  // namespace sbx::session
