#pragma once

#include <signal.h>
#include <time.h>

#include <cstdint>

#include "base/result.hpp"

namespace sbx::supervise {

/// connect(2) of a unix socket that a program has too: what it has set stays as it is, and the
/// supervisor doesn't wait, whatever the program sets meanwhile.
///
/// The program can make the call wait again at the moment in which it is made. Then a timer's
/// signal interrupts it, which needs a handler: SIGURG, which nobody else sends here. Created on
/// the supervising thread.
class UnixConnector {
 public:
  /// Errors: internal "no-signalfd".
  static Result<UnixConnector> make();
  UnixConnector(UnixConnector&& other) noexcept;
  UnixConnector& operator=(UnixConnector&&) = delete;
  ~UnixConnector();

  /// Connects to the socket file that `target` holds (O_PATH). The errno; EAGAIN: the queue of its
  /// listener is full.
  [[nodiscard]] int connect(int socket, int target) const;
  /// Whether the program would wait.
  [[nodiscard]] static bool waits(int socket);
  /// When it would give up, SO_SNDTIMEO, by sys::now_microseconds(); 0: never.
  [[nodiscard]] static std::uint64_t gives_up(int socket);

 private:
  UnixConnector() = default;
  void interrupt_after(long nanoseconds) const;

  bool active_ = false;
  timer_t timer_{};
  struct sigaction before_{};
  sigset_t mask_before_{};
};

}  // namespace sbx::supervise
