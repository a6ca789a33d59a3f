#include "cli/forwarding.hpp"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include <sbx/outcome.hpp>

#include "base/signals.hpp"
#include "session/worker_protocol.hpp"

namespace sbx::cli {
namespace {

constexpr std::chrono::seconds kBeginsWithin{2};

}  // namespace

Forwarding::Forwarding(EventLoop& loop, int parent, Send send)
    : loop_(loop), parent_(parent), send_(std::move(send)) {
  ::sigemptyset(&taken_);
  for (const int signal : session::kForwarded)
    if (!signals::is_ignored(signal)) ::sigaddset(&taken_, signal);
  ::sigprocmask(SIG_BLOCK, &taken_, &before_);
  signals_ = UniqueFd(::signalfd(-1, &taken_, SFD_CLOEXEC | SFD_NONBLOCK));
}

Forwarding::~Forwarding() {
  // What came last concerns the work, which is over.
  while (has_begun_ && signals::next(signals_.get()) != 0) {
  }
  loop_.cancel(timer_);
  loop_.forget(signals_.get());
  loop_.forget(parent_);
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

Status Forwarding::attach() {
  SBX_TRY(loop_.watch(signals_.get(), EPOLLIN, [this](std::uint32_t) { on_signal(); }));
  if (parent_ < 0) return {};
  return loop_.watch(parent_, EPOLLIN, [this](std::uint32_t) { on_end_of_parent(); });
}

void Forwarding::begin() {
  has_begun_ = true;
  loop_.cancel(timer_);
  loop_.set_events(signals_.get(), EPOLLIN);
  if (is_orphan_) send_(SIGHUP);
}

void Forwarding::on_signal() {
  if (!has_begun_) {
    loop_.set_events(signals_.get(), 0);
    return wait_for_begin();
  }
  while (const int signal = signals::next(signals_.get())) {
    send_(signal);
    if (signal == SIGTSTP) (void)::raise(SIGSTOP);  // SIGCONT arrives as any other signal
  }
}

void Forwarding::on_end_of_parent() {
  loop_.forget(parent_);
  is_orphan_ = true;
  has_begun_ ? send_(SIGHUP) : wait_for_begin();
}

void Forwarding::wait_for_begin() {
  if (timer_ == EventLoop::kNoTimer)
    timer_ = loop_.after(kBeginsWithin, [this] { give_up_waiting(); });
}

void Forwarding::give_up_waiting() {
  timer_ = EventLoop::kNoTimer;
  if (is_orphan_) ::_exit(exit_status::kCouldNot);  // nobody hears the reason
  // Here the signal does what it does to any process.
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  ::sigprocmask(SIG_BLOCK, &taken_, nullptr);
  loop_.set_events(signals_.get(), EPOLLIN);
}

}  // namespace sbx::cli
