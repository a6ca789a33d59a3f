#include "spawn/holder.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <span>
#include <utility>

#include "base/control.hpp"
#include "base/message.hpp"
#include "base/process.hpp"
#include "base/sys.hpp"
#include "host/process_view.hpp"
#include "spawn/failure.hpp"
#include "spawn/network.hpp"
#include "spawn/pack.hpp"
#include "spawn/reports.hpp"

namespace sbx::spawn {
namespace {

Error session_gone() {
  return {.kind = ErrorKind::host, .code = "session-gone", .message = "the session has ended"};
}

}  // namespace

bool WaitingInit::lives() const {
  if (!control.valid()) return false;
  pollfd state{.fd = control.get(), .events = 0, .revents = 0};
  return ::poll(&state, 1, 0) == 0;  // POLLHUP: it has ended, and the holder has reaped it
}

Result<UniqueFd> take_init(int control) {
  auto began = receive_report(control);
  if (!began)
    return fail(Error{.kind = ErrorKind::setup,
                      .code = "child-died",
                      .message = "the init of the call ended before its program began"});
  if (began->report.what == control::FromPid1::call_refused)
    return fail(explain_clone_failure(began->report.value));
  if (began->report.what != control::FromPid1::call_began || began->fds.size() != 1)
    return fail(Error{.kind = ErrorKind::internal,
                      .code = "no-descriptors",
                      .message = "the call's PID 1 sent no pidfd"});
  return std::move(began->fds.front());
}

Result<WaitingInit> make_waiting_init(const plan::Plan& plan, int holder,
                                      const Placement& placement) {
  const NetworkRequest no_network;
  const Block block = pack(plan, {.role = child::Role::call,
                                  .network = no_network,
                                  .sources = {},
                                  .list_processes = !host::lists_processes()});
  const UniqueFd sealed = SBX_TRY(block.seal());
  auto [control, child_control] = SBX_TRY(sys::make_packet_pair());
  auto [errors, child_errors] = SBX_TRY(sys::make_pipe());
  const control::CallOrder order{.what = control::FromSupervisor::start_call,
                                 .block_size = static_cast<std::uint32_t>(block.bytes().size()),
                                 .waits = static_cast<bool>(placement.move)};
  std::vector<int> fds{sealed.get(), child_control.get(), child_errors.get()};
  fds.insert(fds.end(), placement.joins.begin(), placement.joins.end());
  SBX_ASSERT(fds.size() <= control::kMostCallDescriptors);
  if (!sys::send_message(holder, std::as_bytes(std::span(&order, 1)), fds))
    return fail(sys::send_failure(session_gone()));
  WaitingInit init{.control = std::move(control), .errors = std::move(errors), .pidfd = {}};
  if (!placement.move) return init;
  init.pidfd = SBX_TRY(take_init(init.control.get()));
  SBX_TRY(placement.move(process::number(init.pidfd.get())));
  SBX_TRY(send_order(init.control.get(), control::FromSupervisor::go));
  return init;
}

}  // namespace sbx::spawn
