#pragma once

#include <signal.h>

#include <array>
#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

/// Signals of this process, blocked and read from a descriptor: no handler of ours ever runs.
/// Children inherit mask and dispositions.
namespace sbx::signals {

/// Those that end a process from outside.
inline constexpr std::array kEnding{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// What becomes of a signal that the caller of sbx ignores, as nohup(1) does.
enum class Ignored : std::uint8_t { stays_ignored, is_taken_too };

[[nodiscard]] bool is_ignored(int signal);

/// Blocks them for good: a signalfd(2) that does not wait. Errors: internal "no-signalfd".
[[nodiscard]] Result<UniqueFd> take(std::span<const int> signals = kEnding,
                                    Ignored ignored = Ignored::stays_ignored);
/// The next that came through such a descriptor; 0 for none.
[[nodiscard]] int next(int fd);
/// One of kEnding that has come and is blocked; 0: none has. It is still to be read.
[[nodiscard]] int pending_end();
/// In a child: the signals that end or stop a process, and SIGCHLD, have their default action, and
/// none is blocked.
void take_defaults();

/// Blocked while it lives. A signal that came and was not read acts when this ends.
class Held {
 public:
  explicit Held(std::span<const int> signals = kEnding, Ignored ignored = Ignored::stays_ignored);
  Held(Held&& other) noexcept;
  Held& operator=(Held&&) = delete;
  ~Held();

  /// A signalfd(2); -1 where the kernel gave none.
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// The next that came; 0 for none.
  [[nodiscard]] int next() const { return signals::next(fd_.get()); }
  /// Forgets what came.
  void drop() const;
  /// In a child that is ended by signals.
  void let_through() const;

 private:
  UniqueFd fd_;
  sigset_t held_{};
  sigset_t before_{};
  bool active_ = true;
};

}  // namespace sbx::signals
