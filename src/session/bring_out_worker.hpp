#pragma once

#include <sys/types.h>

#include <string>
#include <variant>

#include "base/unique_fd.hpp"
#include "protocol/requests.hpp"
#include "run/held_sandbox.hpp"

namespace sbx::session {

using ChangesTask = std::variant<protocol::ChangesRequest, protocol::SnapshotRequest,
                                 protocol::KeepRequest, protocol::BringOutRequest>;

/// What a process that reads the session's changes gets; it was forked from the session's.
struct BringOutTask {
  run::HeldSandbox& held;
  std::string name;
  std::string id;
  ChangesTask asked;
  UniqueFd client;
  pid_t session;  ///< whose end ends this process
  /// The session ends and no command asked for that: what can't be kept is listed.
  bool is_at_end = false;
};

/// Lists, shows, applies, collects or keeps what the calls have written over the workspace, as the
/// options of `sbx run` do after a run, or makes a snapshot of it for `apply`. The calls are
/// stopped meanwhile.
[[noreturn]] void bring_out_and_answer(BringOutTask state);

}  // namespace sbx::session
