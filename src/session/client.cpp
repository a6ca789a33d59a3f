#include "session/client.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include <sbx/outcome.hpp>

#include "session/message.hpp"
#include "session/place.hpp"

namespace sbx::session {
namespace {

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};

bool is_ignored(int signal) {
  struct sigaction now{};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

/// While it lives, signals to this process are passed on to another.
class Forwarding {
 public:
  explicit Forwarding(pid_t worker)
      : process_(static_cast<int>(::syscall(SYS_pidfd_open, worker, 0))) {
    sigset_t taken;
    ::sigemptyset(&taken);
    for (const int signal : kForwarded)
      if (!is_ignored(signal)) ::sigaddset(&taken, signal);
    ::sigprocmask(SIG_BLOCK, &taken, &before_);
    signals_ = UniqueFd(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;
  /// What came last concerns the call, which is over.
  ~Forwarding() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    }
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

  /// Waits until the socket has something, passing on what comes meanwhile.
  void wait(int socket) const {
    for (;;) {
      pollfd watched[2] = {{socket, POLLIN, 0}, {signals_.get(), POLLIN, 0}};
      if (::poll(watched, 2, -1) < 0) continue;
      if (watched[1].revents != 0) pass_on();
      if (watched[0].revents != 0) return;
    }
  }

 private:
  void pass_on() const {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      const int signal = static_cast<int>(info.ssi_signo);
      (void)::syscall(SYS_pidfd_send_signal, process_.get(), signal, nullptr, 0);
      if (signal == SIGTSTP) (void)::raise(SIGSTOP);  // SIGCONT arrives as any other signal
    }
  }

  UniqueFd process_;
  UniqueFd signals_;
  sigset_t before_{};
};

}  // namespace

Result<Client> Client::connect(const host::Host& host, const std::string& name) {
  return Client(SBX_TRY(connect_to(host, name)));
}

Result<Json> Client::answer() {
  Packet packet = SBX_TRY(receive(socket_.get()));
  if (const auto error = packet.body.find("error"); error != packet.body.end())
    return fail(error_from(*error));
  return std::move(packet.body);
}

Result<Json> Client::ask(const Json& wish, std::span<const int> fds) {
  SBX_TRY(send(socket_.get(), wish, fds));
  return answer();
}

Status Client::say(const Json& words, std::span<const int> fds) {
  return send(socket_.get(), words, fds);
}

Result<Json> Client::next() {
  auto packet = answer();
  if (!packet) return fail(blamed(packet.error()));
  return packet;
}

Result<Json> Client::ask_worker(const Json& wish, std::span<const int> fds) {
  const auto begun = ask(wish, fds);
  if (!begun) return fail(blamed(begun.error()));
  const Forwarding forwarding(begun->value("pid", -1));
  forwarding.wait(socket_.get());
  auto ended = answer();
  if (!ended) return fail(blamed(ended.error()));
  return ended;
}

/// The worker holds the connection: its end is the worker's end, and that of the session only if the session is gone.
Error Client::blamed(const Error& error) const {
  const UniqueFd session = peer();
  pollfd ended{session.get(), POLLIN, 0};
  if (error.code != "session-gone" || !session.valid() || ::poll(&ended, 1, 0) != 0) return error;
  return {.kind = ErrorKind::host,
          .code = "call-lost",
          .message = "the process that did this for the session was killed"};
}

/// A pidfd of the session's process: of a connected socket the credentials are those of the process that listened.
UniqueFd Client::peer() const {
  ucred peer{};
  socklen_t size = sizeof peer;
  (void)::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0)));
}

Status Client::ask_to_end(const Json& wish) {
  const UniqueFd process = peer();
  const auto done = ask(wish);
  if (!done && done.error().code != "session-gone") return fail(done.error());
  constexpr int kEndsWithin = 5000;  // ms; it only has to exit
  pollfd ended{process.get(), POLLIN, 0};
  while (process.valid() && ::poll(&ended, 1, kEndsWithin) < 0 && errno == EINTR) {
  }
  return {};
}

namespace {

CallAnswer call_answer(const Json& ended) {
  return {.status = ended.value("status", exit_status::kCouldNot),
          .record = ended.value("record", "")};
}

}  // namespace

Status Client::begin_call(const Json& wish, std::span<const int> fds) {
  (void)SBX_TRY(ask(wish, fds));
  return {};
}

Result<CallAnswer> Client::end_call() {
  return call_answer(SBX_TRY(answer()));
}

Result<CallAnswer> Client::call(const Json& wish, std::span<const int> fds) {
  return call_answer(SBX_TRY(ask_worker(wish, fds)));
}

}  // namespace sbx::session
