#include "cli/notebook/starter.hpp"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/process.hpp"
#include "base/sys.hpp"
#include "cli/session_start.hpp"
#include "protocol/packet.hpp"
#include "session/json.hpp"

namespace sbx::cli {
namespace {

using session::member_or;
using session::part;

[[noreturn]] void start_when_told(const Invocation& typed, const OwnProcess& process, int socket,
                                  int owner) {
  if (!protocol::receive(socket)) ::_exit(0);
  Invocation start = typed;
  start.request.operands.clear();
  start.request.language.clear();
  const session::StartAnswer answer = start_session(start, process, "", owner);
  Json told{{"status", answer.status}, {"facts", answer.facts}};
  if (answer.error) told["error"] = protocol::error_json(*answer.error);
  (void)protocol::send(socket, told);
  ::_exit(0);
}

}  // namespace

Result<Starter> Starter::fork(const Invocation& typed, const OwnProcess& process) {
  auto [own, other] = SBX_TRY(sys::make_packet_pair());
  const UniqueFd self = process::open_self();
  if (!self.valid()) return fail_errno(ErrorKind::host, "cannot-clone", "cannot start a process");
  const process::Child child = SBX_TRY(process::fork([&]() -> int {
    own.reset();
    start_when_told(typed, process, other.get(), self.get());
  }));
  return Starter(std::move(own), child.pid);
}

Starter::Starter(Starter&& other) noexcept
    : socket_(std::move(other.socket_)), pid_(std::exchange(other.pid_, -1)) {}

Starter::~Starter() {
  end();
}

void Starter::end() {
  socket_.reset();
  if (pid_ > 0) process::wait_for(pid_);
  pid_ = -1;
}

Result<session::StartAnswer> Starter::start() {
  SBX_TRY(protocol::send(socket_.get(), {{"start", true}}));
  const protocol::Packet packet = SBX_TRY(protocol::receive(socket_.get()));
  end();
  session::StartAnswer answer{.status = member_or(packet.body, "status", exit_status::kCouldNot),
                              .facts = part(packet.body, "facts")};
  if (const auto error = packet.body.find("error"); error != packet.body.end())
    answer.error = protocol::error_from(*error);
  return answer;
}

}  // namespace sbx::cli
