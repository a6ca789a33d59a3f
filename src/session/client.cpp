#include "session/client.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <sbx/outcome.hpp>

#include "base/process.hpp"
#include "protocol/packet.hpp"
#include "session/json.hpp"
#include "session/session_directory.hpp"
#include "session/worker_protocol.hpp"

namespace sbx::session {
namespace {

bool is_ignored(int signal) {
  struct sigaction now{};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

/// While it lives, signals to this process are passed on: to a process, or to a call over its
/// connection.
class Forwarding {
 public:
  Forwarding(int socket, int parent) : socket_(socket), parent_(parent) {
    ::sigemptyset(&taken_);
    for (const int signal : kForwarded)
      if (!is_ignored(signal)) ::sigaddset(&taken_, signal);
    ::sigprocmask(SIG_BLOCK, &taken_, &before_);
    signals_ = UniqueFd(::signalfd(-1, &taken_, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;
  ~Forwarding() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

  /// Waits for the first answer, which says who takes signals. What comes earlier is kept for it,
  /// but not for long: the session may be stopped, and nobody can then be asked.
  void wait_for_begin() const {
    constexpr int kAnswersWithin = 2000;  // ms
    for (;;) {
      std::array watched = waits_for();
      if (::poll(watched.data(), watched.size(), -1) < 0) continue;
      if (watched[0].revents != 0 || ::poll(watched.data(), 1, kAnswersWithin) > 0) return;
      if (watched[2].revents != 0) ::_exit(exit_status::kCouldNot);  // nobody hears the reason
      // Here the signal does what it does to any process.
      ::sigprocmask(SIG_SETMASK, &before_, nullptr);
      ::sigprocmask(SIG_BLOCK, &taken_, nullptr);
    }
  }

  /// Waits until the socket has something, passing on what comes meanwhile. `worker`: -1: over the
  /// socket.
  void wait_for_end(pid_t worker) {
    if (worker >= 0) process_ = process::open(worker);
    for (;;) {
      std::array watched = waits_for();
      if (::poll(watched.data(), watched.size(), -1) < 0) continue;
      if (watched[1].revents != 0) pass_on();
      if (watched[2].revents != 0) {
        parent_ = -1;
        send_on(SIGHUP);
      }
      if (watched[0].revents != 0) return drop();
    }
  }

 private:
  [[nodiscard]] std::array<pollfd, 3> waits_for() const {
    return {{{socket_, POLLIN, 0}, {signals_.get(), POLLIN, 0}, {parent_, POLLIN, 0}}};
  }

  void send_on(int signal) const {
    if (process_.valid())
      (void)process::send_signal(process_.get(), signal);
    else
      (void)protocol::send(socket_, {{"signal", signal}});  // fails where the call is over
  }

  void pass_on() const {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      const int signal = static_cast<int>(info.ssi_signo);
      send_on(signal);
      if (signal == SIGTSTP) (void)::raise(SIGSTOP);  // SIGCONT arrives as any other signal
    }
  }

  /// What came last concerns the call, which is over.
  void drop() const {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    }
  }

  int socket_;
  int parent_;
  UniqueFd process_;
  UniqueFd signals_;
  sigset_t taken_{};
  sigset_t before_{};
};

}  // namespace

Result<Client> Client::connect(const host::Host& host, const std::string& name) {
  return Client(SBX_TRY(connect_to(host, name)));
}

Result<Client> Client::connect(const LiveSession& session) {
  return Client(SBX_TRY(connect_to(session)));
}

Result<Json> Client::answer() {
  protocol::Packet packet = SBX_TRY(protocol::receive(socket_.get()));
  if (const auto error = packet.body.find("error"); error != packet.body.end())
    return fail(protocol::error_from(*error));
  return std::move(packet.body);
}

Result<Json> Client::ask(const Json& request, std::span<const int> fds) {
  SBX_TRY(protocol::send(socket_.get(), request, fds));
  return answer();
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

Result<Json> Client::ask_soon(const Json& request) {
  constexpr int kAnswersWithin = 2000;  // ms
  SBX_TRY(protocol::send(socket_.get(), request));
  pollfd answers{socket_.get(), POLLIN, 0};
  int ready = 0;
  while ((ready = ::poll(&answers, 1, kAnswersWithin)) < 0 && errno == EINTR) {
  }
  if (ready == 0) return fail(silent());
  return answer();
}

Status Client::send(const Json& words, std::span<const int> fds) {
  return protocol::send(socket_.get(), words, fds);
}

bool Client::has_more() const {
  pollfd has{socket_.get(), POLLIN, 0};
  return ::poll(&has, 1, 0) > 0;
}

Result<std::variant<protocol::CellEvent, protocol::CellEnded>> Client::next_of_cell() {
  Json body = SBX_TRY(next_whole());
  if (body.contains("after_out"))
    return SBX_TRY(protocol::answer_from<protocol::CellEvent>(std::move(body)));
  return SBX_TRY(protocol::answer_from<protocol::CellEnded>(std::move(body)));
}

Result<Json> Client::next_whole() {
  auto packet = protocol::receive(socket_.get());
  if (!packet) return fail(blamed(packet.error()));
  return std::move(packet->body);
}

Result<Json> Client::next() {
  auto packet = answer();
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

Result<Json> Client::ask_worker(const Json& request, std::span<const int> fds, int parent) {
  // From here on: a call may run before its client hears of it.
  Forwarding forwarding(socket_.get(), parent);
  SBX_TRY(send(request, fds));
  forwarding.wait_for_begin();
  const auto begun = answer();
  if (!begun) return fail(blamed(begun.error()));
  forwarding.wait_for_end(member_or(*begun, "pid", pid_t{-1}));
  auto ended = answer();
  if (!ended) return fail(blamed(ended.error()));
  return ended;
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

Status Client::stop_and_wait(const Json& request) {
  const UniqueFd process = peer();
  SBX_TRY(protocol::send(socket_.get(), request));
  constexpr int kStopsWithin = 10'000;  // ms; calls have 4 s, and files may be read for another 5
  pollfd answers{socket_.get(), POLLIN, 0};
  int ready = 0;
  while ((ready = ::poll(&answers, 1, kStopsWithin)) < 0 && errno == EINTR) {
  }
  if (ready == 0) return fail(silent());
  const auto done = answer();
  if (!done && done.error().code != "session-gone") return fail(done.error());
  constexpr int kEndsWithin = 5000;  // ms; it only has to exit
  pollfd ended{process.get(), POLLIN, 0};
  while (process.valid() && ::poll(&ended, 1, kEndsWithin) < 0 && errno == EINTR) {
  }
  return {};
}

namespace {

Result<CallAnswer> call_answer(const Json& ended) {
  if (!part(ended, "status").is_number_integer()) return protocol::garbled();
  return CallAnswer{.status = member_or(ended, "status", exit_status::kCouldNot),
                    .record = member_or(ended, "record", "")};
}

}  // namespace

Status Client::begin_call(const Json& request, std::span<const int> fds) {
  (void)SBX_TRY(ask(request, fds));
  return {};
}

Result<CallAnswer> Client::end_call() {
  return call_answer(SBX_TRY(answer()));
}

Result<CallAnswer> Client::call(const Json& request, std::span<const int> fds, int parent) {
  return call_answer(SBX_TRY(ask_worker(request, fds, parent)));
}

}  // namespace sbx::session
