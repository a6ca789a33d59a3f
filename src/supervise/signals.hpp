#pragma once

#include <signal.h>

#include "base/result.hpp"
#include "base/signals.hpp"

namespace sbx::supervise {

/// During its lifetime, the signals that end or stop a run are blocked and read from a descriptor
/// instead. A signal that the caller ignores (nohup) stays ignored. SIGPIPE is ignored, so that
/// writing without a reader fails with EPIPE. Create it before the spawn, on the supervising
/// thread: children inherit mask and dispositions and must reset both.
class SignalScope {
 public:
  /// Errors: internal (no descriptor).
  [[nodiscard]] static Result<SignalScope> make();

  SignalScope(SignalScope&& other) noexcept;
  SignalScope& operator=(SignalScope&&) = delete;
  ~SignalScope();

  [[nodiscard]] int fd() const { return held_.fd(); }
  /// The next pending signal; 0 if there is none.
  [[nodiscard]] int next() const { return held_.next(); }
  /// Stops this process as SIGTSTP would, and returns when it continues. If stopping is impossible
  /// (an orphaned process group), the kernel ignores it and this returns at once.
  void stop_here() const;

 private:
  SignalScope();

  signals::Held held_;
  struct sigaction pipe_before_{};
  struct sigaction child_before_{};
  bool active_ = false;
};

}  // namespace sbx::supervise
