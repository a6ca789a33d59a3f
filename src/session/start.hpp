#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/json.hpp"
#include "base/result.hpp"
#include "run/launch.hpp"

/// A sandbox that stays: its process holds it, takes calls over a socket and ends with it.
namespace sbx::session {

struct StartAnswer {
  int status = 0;  ///< 0: it takes calls
  Json facts{};    ///< of Session::info
  /// The first one, which was told. None where a signal cancelled the start.
  std::optional<Error> error{};
};
/// Forks the session's process and waits until it takes calls. `name`: empty for one of its own
/// making. `request`: its policies, overrides, program (with `hold`) and variables. `sinks`: of the
/// start. What goes wrong in the start is told on stderr, by `tell`; then the exit status is
/// returned. A signal that would end this process ends the start, with the status of a cancelled
/// run and no error. The session stops when the process of the pidfd `request.parent` ends, if
/// there is one. Call it while this process is single-threaded and knows nothing else: the
/// sandbox's PID 1 is a copy of a copy of it.
[[nodiscard]] StartAnswer start(std::string name, run::Request request, const run::Sinks& sinks,
                                const std::function<void(const policy::Findings&)>& tell);

}  // namespace sbx::session
