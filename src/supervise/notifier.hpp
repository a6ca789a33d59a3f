#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>

#include "base/events.hpp"

#include "base/event_loop.hpp"
#include "supervise/settings.hpp"

struct seccomp_notif;

namespace sbx::supervise {

/// Answers a sandbox's denied system calls with the policy's errno and counts them by name. It
/// never reads the caller's memory to decide on them, and never lets a denied call continue,
/// seccomp_unotify(2): a call continues only if the policy allows its number and registers and the
/// filter notified it for inspection. A note may answer such a call instead (OwnerCalls,
/// UnixSockets).
///
/// Under a flood it answers late, so that it uses at most a tenth of a CPU; the counts stay exact.
/// Unspent time is saved for a while for calls that continue, so that honest bursts of them don't
/// wait. Calls are always received at once: only then does the caller wait killable, so that no
/// signal handler can turn the policy's errno into EINTR (WAIT_KILLABLE_RECV).
class Notifier {
 public:
  struct Options {
    ExplainCall explain;
    std::vector<Note> notes{};
    /// denied = "kill": called at the first denial instead of an answer. Empty: answer.
    std::function<void(const std::string& what)> kill;
    Events* events = nullptr;  ///< receives each denial at its first attempt
  };

  /// The listener is borrowed.
  Notifier(EventLoop& loop, int listener, Options options);
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;
  ~Notifier();

  [[nodiscard]] Status start();
  /// The denials in order of first occurrence; those beyond the bound are counted as "others".
  /// Those since the last time.
  [[nodiscard]] std::vector<Denial> take() {
    last_ = {};  // refers to one of them
    return std::exchange(denials_, {});
  }

 private:
  struct LastCall {
    int number = -1;
    std::uint64_t arguments[6] = {};
    std::size_t entry = 0;
    int errno_value = 0;
    const Note* note = nullptr;  ///< the call is allowed and inspected
  };

  /// A received call without an answer yet.
  struct Waiting {
    std::uint64_t id = 0;
    int errno_value = 0;
    bool goes_on = false;
    bool is_noted = false;           ///< no denial
    const Note* taken_by = nullptr;  ///< answers the call when that is due
    NotedCall call{};
    std::uint32_t thread = 0;
  };

  void readable(std::uint32_t events);
  std::optional<Waiting> receive();
  bool answer(const Waiting& call) const;
  void answer_later(const Waiting& call);
  void answer_what_is_due();
  bool rests();
  [[nodiscard]] std::uint64_t window_end() const;
  void earn();
  void spend(std::uint64_t nanoseconds);
  const LastCall& look_up(const ::seccomp_notif& call);
  [[nodiscard]] const Note* note_of(int number) const;
  Waiting look_at(const ::seccomp_notif& call, const Note& note) const;
  std::size_t entry_of(Denial denial, std::uint32_t process);
  void stop();

  EventLoop& loop_;
  int listener_;
  Options options_;
  std::vector<Denial> denials_;
  LastCall last_;
  std::uint64_t received_ = 0;
  /// One per blocked thread, so limits.processes bounds them; entries of killed threads are swept
  /// out.
  std::deque<Waiting> waiting_;
  std::size_t sweep_at_ = 0;
  EventLoop::TimerId rest_ = EventLoop::kNoTimer;
  std::uint64_t window_start_ = 0;  ///< microseconds
  std::uint64_t window_cost_ = 0;   ///< nanoseconds of CPU
  int answered_in_window_ = 0;
  std::int64_t credit_ = 0;         ///< unspent nanoseconds of CPU
  std::uint64_t earned_until_ = 0;  ///< microseconds
};

}  // namespace sbx::supervise
