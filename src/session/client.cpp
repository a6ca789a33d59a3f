#include "session/client.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <sbx/outcome.hpp>

#include "base/process.hpp"
#include "protocol/packet.hpp"
#include "session/live_sessions.hpp"

namespace sbx::session {

Result<Client> Client::connect(const host::Host& host, const std::string& name) {
  return Client(SBX_TRY(connect_to(host, name)));
}

Result<Client> Client::connect(const LiveSession& session) {
  return Client(SBX_TRY(connect_to(session)));
}

Error Client::silent() const {
  ucred peer{};
  socklen_t size = sizeof peer;
  (void)::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
  const std::string pid = std::to_string(peer.pid);
  return {.kind = ErrorKind::host,
          .code = "session-silent",
          .message = "the session's process " + pid + " does not answer",
          .hint = "kill -CONT " + pid + " if it is stopped; kill -KILL " + pid +
                  " ends it and everything in it"};
}

Status Client::await_answer() const {
  constexpr int kAnswersWithin = 2000;  // ms
  pollfd answers{socket_.get(), POLLIN, 0};
  int ready = 0;
  while ((ready = ::poll(&answers, 1, kAnswersWithin)) < 0 && errno == EINTR) {
  }
  return ready == 0 ? fail(silent()) : Status();
}

bool Client::has_more() const {
  pollfd has{socket_.get(), POLLIN, 0};
  return ::poll(&has, 1, 0) > 0;
}

Result<std::variant<protocol::CellEvent, protocol::CellEnded>> Client::next_of_cell() {
  Json body = SBX_TRY(next());
  if (body.contains(protocol::CellEvent::kMark))
    return SBX_TRY(protocol::answer_from<protocol::CellEvent>(std::move(body)));
  return SBX_TRY(protocol::answer_from<protocol::CellEnded>(std::move(body)));
}

Result<Json> Client::next() {
  return std::move(SBX_TRY(next_packet()).body);
}

Result<protocol::Packet> Client::next_packet() {
  auto packet = protocol::receive(socket_.get());
  if (!packet) return fail(blamed(packet.error()));
  return packet;
}

void Client::never_wait() const {
  (void)::fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
}

void Client::note_senders() const {
  const int on = 1;
  (void)::setsockopt(socket_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
}

UniqueFd Client::next_sender() const {
  char byte = 0;
  iovec into{.iov_base = &byte, .iov_len = sizeof byte};
  // There is no room for descriptors: a look at a packet would make copies of them.
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(ucred))];
  msghdr header{};
  header.msg_iov = &into;
  header.msg_iovlen = 1;
  header.msg_control = space;
  header.msg_controllen = sizeof space;
  if (::recvmsg(socket_.get(), &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0) return {};
  const cmsghdr* const part = CMSG_FIRSTHDR(&header);
  if (part == nullptr || part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS)
    return {};
  ucred sender{};
  std::memcpy(&sender, CMSG_DATA(part), sizeof sender);
  return sender.pid > 0 ? process::open(sender.pid) : UniqueFd();
}

/// The worker holds the connection: its end is the worker's end, and that of the session only if
/// the session is gone.
Error Client::blamed(const Error& error) const {
  const UniqueFd session = peer();
  pollfd ended{session.get(), POLLIN, 0};
  if (error.code != "session-gone" || !session.valid() || ::poll(&ended, 1, 0) != 0) return error;
  return {.kind = ErrorKind::host,
          .code = "call-lost",
          .message = "the process that did this for the session was killed"};
}

/// A pidfd of the session's process: of a connected socket the credentials are those of the process
/// that listened.
UniqueFd Client::peer() const {
  ucred peer{};
  socklen_t size = sizeof peer;
  (void)::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return process::open(peer.pid);
}

Status Client::stop_and_wait() {
  const UniqueFd process = peer();
  SBX_TRY(send(protocol::StopRequest{}));
  constexpr int kStopsWithin = 10'000;  // ms; calls have 4 s, and files may be read for another 5
  pollfd answers{socket_.get(), POLLIN, 0};
  int ready = 0;
  while ((ready = ::poll(&answers, 1, kStopsWithin)) < 0 && errno == EINTR) {
  }
  if (ready == 0) return fail(silent());
  const auto done = answer<protocol::DoneAnswer>();
  if (!done && done.error().code != "session-gone") return fail(done.error());
  constexpr int kExitsWithin = 5000;  // ms; it only has to exit
  pollfd ended{process.get(), POLLIN, 0};
  while (process.valid() && ::poll(&ended, 1, kExitsWithin) < 0 && errno == EINTR) {
  }
  return {};
}

}  // namespace sbx::session
