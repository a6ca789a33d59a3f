#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/unique_fd.hpp"
#include "run/held_sandbox.hpp"

namespace sbx::session {

/// What a process that reads the session's changes gets; it was forked from the session's.
struct BringOutTask {
  run::HeldSandbox& held;
  std::string name;
  std::string id;
  Json wish;
  std::vector<UniqueFd> fds;  ///< the client's standard streams
  UniqueFd client;
};

/// Lists, shows, applies, collects or keeps what the calls have written over the workspace, as the options of `sbx run`
/// do after a run. The calls are stopped meanwhile.
[[noreturn]] void bring_out_and_answer(BringOutTask task);

}  // namespace sbx::session
