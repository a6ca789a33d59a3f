#include "cli/notebook/starter.hpp"

#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "base/process.hpp"
#include "base/sys.hpp"
#include "cli/session_start.hpp"
#include "protocol/answers.hpp"

namespace sbx::cli {
namespace {

/// What the process that starts the session says once.
struct Started {
  int status = 0;
  std::optional<protocol::SessionFacts> facts;
  std::optional<protocol::ErrorFields> error;
};
SBX_FIELDS(Started, status, facts, error)
struct StartOrder {};
SBX_NO_FIELDS(StartOrder)

[[noreturn]] void start_when_told(const Invocation& typed, const OwnProcess& process, int socket,
                                  int owner) {
  if (!protocol::receive(socket)) ::_exit(0);
  Invocation start = typed;
  start.request.operands.clear();
  start.request.language.clear();
  session::StartAnswer answer = start_session(start, process, "", owner);
  Started told{.status = answer.status, .facts = std::move(answer.facts)};
  if (answer.error) told.error = protocol::fields_from(*answer.error);
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
  SBX_TRY(protocol::send(socket_.get(), StartOrder{}));
  protocol::Packet packet = SBX_TRY(protocol::receive(socket_.get()));
  end();
  Started started = SBX_TRY(read_fields<Started>(std::move(packet.body)));
  session::StartAnswer answer{.status = started.status,
                              .facts = std::move(started.facts).value_or(protocol::SessionFacts{})};
  if (started.error) answer.error = protocol::error_of(std::move(*started.error));
  return answer;
}

}  // namespace sbx::cli
