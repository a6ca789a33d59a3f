#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/unique_fd.hpp"
#include "run/held_sandbox.hpp"

namespace sbx::session {

/// What the worker of one call gets from the session's process, which it was forked from.
struct Task {
  const run::HeldSandbox& held;
  run::CallName name;
  Json wish;               ///< what the client asks for
  run::Request request{};  ///< with it: the program and its options
  std::vector<UniqueFd>
      fds;          ///< the call's standard streams, and one for events where the client wants them
  UniqueFd client;  ///< the connection; invalid: a background call, whose output is logged
  UniqueFd link;
  UniqueFd ask;
  cgroup::Group* group = nullptr;
  int image = -1;  ///< of sbx itself: the call runs code of sbx's own
};

/// Runs the call, supervises it, answers the client and reports to the session. The process is the call's.
[[noreturn]] void work(Task task);

}  // namespace sbx::session
