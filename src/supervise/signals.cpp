#include "supervise/signals.hpp"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <utility>

namespace sbx::supervise {
namespace {

constexpr int kTaken[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};

bool ignored(int signal) {
  struct sigaction now{};
  return ::sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
         now.sa_handler == SIG_IGN;
}

}  // namespace

Result<SignalScope> SignalScope::make() {
  SignalScope scope;
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : kTaken)
    if (!ignored(signal)) sigaddset(&taken, signal);
  scope.fd_ = UniqueFd(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!scope.fd_.valid())
    return fail_errno(ErrorKind::internal, "no-signalfd", "cannot receive signals");
  ::pthread_sigmask(SIG_BLOCK, &taken, &scope.mask_before_);
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &scope.pipe_before_);
  // If the caller ignores SIGCHLD, the kernel reaps for us, and the run's times would be lost.
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &standard, &scope.child_before_);
  scope.active_ = true;
  return scope;
}

SignalScope::SignalScope(SignalScope&& other) noexcept
    : fd_(std::move(other.fd_)),
      mask_before_(other.mask_before_),
      pipe_before_(other.pipe_before_),
      child_before_(other.child_before_),
      active_(std::exchange(other.active_, false)) {}

SignalScope::~SignalScope() {
  if (!active_) return;
  // Discards pending signals: they were handled or concern a run that is over, and must not end the process before it
  // has reported the outcome.
  while (next()) {
  }
  ::sigaction(SIGCHLD, &child_before_, nullptr);
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::optional<int> SignalScope::next() const {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

void SignalScope::stop_here() const {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  ::raise(SIGTSTP);  // blocked: pending until the next line, where the process stops
  ::pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
  ::pthread_sigmask(SIG_BLOCK, &stop, nullptr);
}

}  // namespace sbx::supervise
