#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "protocol/requests.hpp"
#include "run/call.hpp"
#include "run/held_sandbox.hpp"

namespace sbx::session {

/// Which context a worker has.
struct ContextOfWorker {
  std::string name{};
  std::string language{};
  std::string directory{};  ///< where it begins; empty: the session's
  bool was_lost = false;    ///< what an earlier one of this name remembered
  std::string lost_because{};
  bool is_spare = false;  ///< the session says later which context it is
};

/// What a worker has for one call or one context.
struct WorkerState {
  // From the session's process, which it was forked from:
  const run::HeldSandbox& held;
  run::CallName name;
  UniqueFd link;
  UniqueFd ask;
  std::unique_ptr<cgroup::Group> group{};
  ContextOfWorker context{};  ///< only a context has it
  // Only a call has these:
  protocol::CallRequest asked{};
  run::Request request{};  ///< the program and its options
  std::vector<UniqueFd>
      fds{};               ///< its standard streams, and one for events where the client wants them
  UniqueFd client{};       ///< the connection; invalid: a background call, whose output is logged
  run::CallAhead ahead{};  ///< for `group`
  UniqueFd mounts{};       ///< its mount namespace, while it runs
  UniqueFd image{};        ///< of sbx itself: the call runs code of sbx's own
};

}  // namespace sbx::session
