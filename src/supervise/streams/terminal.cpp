#include "supervise/streams/terminal.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>

namespace sbx::supervise {
namespace {

/// Blocks SIGTTOU, which would stop a background process that changes the settings, tcsetattr(3):
/// restoring them must not hang.
void set_without_stopping(int fd, const termios& settings) {
  sigset_t output, before;
  sigemptyset(&output);
  sigaddset(&output, SIGTTOU);
  ::pthread_sigmask(SIG_BLOCK, &output, &before);
  ::tcsetattr(fd, TCSADRAIN, &settings);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

RawTerminal::RawTerminal(int fd) : fd_(fd) {
  termios now{};
  if (::tcgetattr(fd, &now) == 0) before_ = now;
  make_raw();
}

void RawTerminal::make_raw() const {
  if (!before_) return;
  termios raw = *before_;
  ::cfmakeraw(&raw);
  set_without_stopping(fd_, raw);
}

void RawTerminal::restore() const {
  if (before_) set_without_stopping(fd_, *before_);
}

void RawTerminal::copy_size_to(int master) const {
  winsize size{};
  if (::ioctl(fd_, TIOCGWINSZ, &size) == 0) ::ioctl(master, TIOCSWINSZ, &size);
}

}  // namespace sbx::supervise
