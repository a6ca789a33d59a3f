#pragma once

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "plan/plan.hpp"
#include "spawn/placement.hpp"

/// What is asked of a holder, PID 1 of a held sandbox, over its control socket: inits for calls.
namespace sbx::spawn {

/// The init of a call that waits for its program, in a control group and with its mounts. It ends
/// when this is let go.
struct WaitingInit {
  UniqueFd control;
  UniqueFd errors;
  UniqueFd pidfd;  ///< invalid: its first message has not been read

  [[nodiscard]] bool lives() const;
};

/// Asks a holder for one. Of `plan` the mounts that are a call's own count, which are the same for
/// all calls of a session. Returns before it is ready; with `placement.move` it waits until the
/// holder has cloned the init, because only the caller can move it. Errors: host (the session is
/// gone), setup.
[[nodiscard]] Result<WaitingInit> make_waiting_init(const plan::Plan& plan, int holder,
                                                    const Placement& placement);
/// The first message of a call's init: its pidfd. Waits for it. Errors: host.
[[nodiscard]] Result<UniqueFd> take_init(int control);

}  // namespace sbx::spawn
