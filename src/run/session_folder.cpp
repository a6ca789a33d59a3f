#include "run/session_folder.hpp"

#include "host/state.hpp"
#include "workspace/state.hpp"

namespace sbx::run {

Result<UniqueFd> open_session_folder(const host::Host& host, IfMissing missing) {
  return workspace::open_state(host::runtime_folder(host), "sessions",
                               missing == IfMissing::is_made ? workspace::Missing::is_made
                                                             : workspace::Missing::is_an_error);
}

Result<UniqueFd> open_history_folder(const host::Host& host) {
  return workspace::open_state(host::state_folder(host), "history", workspace::Missing::is_made);
}

}  // namespace sbx::run
