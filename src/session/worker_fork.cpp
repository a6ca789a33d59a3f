#include "session/worker_fork.hpp"

#include <utility>
#include <vector>

#include "base/process.hpp"
#include "base/sys.hpp"

namespace sbx::session {

/// The copy keeps no descriptor but those that calls need: connections of clients and of the
/// network would stay open with it, and it may outlive them.
Result<Worker> fork_worker(WorkerState state, void (*work)(WorkerState)) {
  auto link = SBX_TRY(sys::make_packet_pair());
  auto ask = SBX_TRY(sys::make_packet_pair());
  state.link = std::move(link.second);
  state.ask = std::move(ask.second);
  auto child = process::fork([&]() -> int {
    std::vector<int> kept = state.held.descriptors_for_calls();
    kept.insert(kept.end(), {state.link.get(), state.ask.get()});
    process::keep_only(std::move(kept));
    work(std::move(state));
    return 0;
  });
  if (!child)
    return fail_errno(ErrorKind::host, "cannot-clone", "no process can be started for the call",
                      child.error().errno_value);
  return Worker{.pid = child->pid,
                .process = std::move(child->process),
                .link = std::move(link.first),
                .ask = std::move(ask.first)};
}

}  // namespace sbx::session
