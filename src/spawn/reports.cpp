#include "spawn/reports.hpp"

#include <sys/socket.h>

#include <span>

#include "base/message.hpp"

namespace sbx::spawn {

std::optional<ReceivedReport> receive_report(int control) {
  ReceivedReport received;
  sys::Message message =
      sys::receive_message(control, std::as_writable_bytes(std::span(&received.report, 1)));
  if (message.length != sizeof received.report) return std::nullopt;
  received.fds = std::move(message.fds);
  return received;
}

Status send_order(int control, control::FromSupervisor what) {
  const control::Order order{what, 0};
  if (::send(control, &order, sizeof order, MSG_NOSIGNAL) != sizeof order)
    return fail_errno(ErrorKind::setup, "child-died", "the sandbox died before it was set up");
  return {};
}

}  // namespace sbx::spawn
