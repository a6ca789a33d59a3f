#include "supervise/signals.hpp"

#include <pthread.h>

#include <array>
#include <utility>

namespace sbx::supervise {
namespace {

constexpr std::array kTaken{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};

}  // namespace

Result<SignalScope> SignalScope::make() {
  SignalScope scope;
  if (scope.fd() < 0)
    return fail_errno(ErrorKind::internal, "no-signalfd", "cannot receive signals");
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

SignalScope::SignalScope() : held_(kTaken) {}

SignalScope::SignalScope(SignalScope&& other) noexcept
    : held_(std::move(other.held_)),
      pipe_before_(other.pipe_before_),
      child_before_(other.child_before_),
      active_(std::exchange(other.active_, false)) {}

SignalScope::~SignalScope() {
  if (!active_) return;
  // Discards pending signals: they were handled or concern a run that is over, and must not end the
  // process before it has reported the outcome.
  held_.drop();
  ::sigaction(SIGCHLD, &child_before_, nullptr);
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
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
