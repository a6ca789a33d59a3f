#include "base/signals.hpp"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace sbx::signals {
namespace {

sigset_t set_of(std::span<const int> signals, Ignored ignored) {
  sigset_t set;
  sigemptyset(&set);
  for (const int each : signals)
    if (ignored == Ignored::is_taken_too || !is_ignored(each)) sigaddset(&set, each);
  return set;
}

UniqueFd open(const sigset_t& set) {
  return UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace

bool is_ignored(int signal) {
  struct sigaction now{};
  return ::sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
         now.sa_handler == SIG_IGN;
}

Result<UniqueFd> take(std::span<const int> signals, Ignored ignored) {
  const sigset_t set = set_of(signals, ignored);
  UniqueFd fd = open(set);
  if (!fd.valid()) return fail_errno(ErrorKind::internal, "no-signalfd", "cannot receive signals");
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return fd;
}

int next(int fd) {
  signalfd_siginfo info{};
  const bool came = ::read(fd, &info, sizeof info) == sizeof info;
  return came ? static_cast<int>(info.ssi_signo) : 0;
}

int pending_end() {
  sigset_t pending;
  if (::sigpending(&pending) != 0) return 0;
  const auto* const first =
      std::ranges::find_if(kEnding, [&](int signal) { return sigismember(&pending, signal) == 1; });
  return first == kEnding.end() ? 0 : *first;
}

void take_defaults() {
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGCHLD})
    (void)::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

Held::Held(std::span<const int> signals, Ignored ignored) : held_(set_of(signals, ignored)) {
  fd_ = open(held_);
  ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
}

Held::Held(Held&& other) noexcept
    : fd_(std::move(other.fd_)),
      held_(other.held_),
      before_(other.before_),
      active_(std::exchange(other.active_, false)) {}

Held::~Held() {
  if (active_) ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Held::drop() const {
  while (next() != 0) {
  }
}

void Held::let_through() const {
  ::pthread_sigmask(SIG_UNBLOCK, &held_, nullptr);
}

}  // namespace sbx::signals
