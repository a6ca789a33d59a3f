#include "run/session_folder.hpp"

#include "host/state.hpp"
#include "workspace/state.hpp"

namespace sbx::run {

Result<UniqueFd> open_session_folder(const host::Host& host, IfMissing missing) {
  auto folder =
      workspace::open_state(host::runtime_folder(host), "sessions",
                            missing == IfMissing::is_made ? workspace::Missing::is_made
                                                          : workspace::Missing::is_an_error);
  if (!folder && folder.error().code == "no-state-folder")
    folder.error().hint =
        "sessions are kept there: XDG_RUNTIME_DIR can name another directory, of "
        "yours and of mode 0700";
  return folder;
}

Result<UniqueFd> open_history_folder(const host::Host& host) {
  return workspace::open_state(host::state_folder(host), "history", workspace::Missing::is_made);
}

}  // namespace sbx::run
