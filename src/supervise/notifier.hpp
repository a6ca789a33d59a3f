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

/// Answers the denied system calls of a sandbox with the policy's errno and counts them by name. To
/// decide it never reads the memory of the caller, and never lets a denied call go on,
/// seccomp_unotify(2): a call goes on only if its number and registers are allowed by the policy
/// and the filter notified it to be looked at.
/// Under a flood it answers late, so that it costs at most a tenth of a CPU; counts stay exact. What
/// was not spent is kept for a while for calls that go on, so that honest bursts of them don't wait. A
/// call is received at once in any case: only from then on does its caller wait killable, that is,
/// no signal handler can turn the policy's errno into EINTR (WAIT_KILLABLE_RECV).
class Notifier {
 public:
  struct Options {
    ExplainCall explain;
    std::vector<Note> notes{};
    /// denied = "kill": called at the first denial instead of answering it. Empty: answer.
    std::function<void(const std::string& what)> kill;
    Events* events = nullptr;  ///< hears each denial at its first attempt
  };

  /// The listener is borrowed.
  Notifier(EventLoop& loop, int listener, Options options);
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;
  ~Notifier();

  [[nodiscard]] Status start();
  /// What was denied, in the order of first sight; what is over the bound is under "others".
  [[nodiscard]] std::vector<Denial> take() { return std::move(denials_); }

 private:
  struct LastCall {
    int number = -1;
    std::uint64_t arguments[6] = {};
    std::size_t entry = 0;
    int errno_value = 0;
    const Note* note = nullptr;  ///< the call is allowed and looked at
  };

  /// A received call that has no answer yet.
  struct Waiting {
    std::uint64_t id = 0;
    int errno_value = 0;
    bool goes_on = false;
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
  void look_at(const ::seccomp_notif& call, const Note& note) const;
  std::size_t entry_of(Denial denial, std::uint32_t process);
  void stop();

  EventLoop& loop_;
  int listener_;
  Options options_;
  std::vector<Denial> denials_;
  LastCall last_;
  std::uint64_t received_ = 0;
  /// One for each blocked thread, so limits.processes bounds it; those of killed ones are swept out.
  std::deque<Waiting> waiting_;
  std::size_t sweep_at_ = 0;
  EventLoop::TimerId rest_ = EventLoop::kNoTimer;
  std::uint64_t window_start_ = 0;  ///< microseconds
  std::uint64_t window_cost_ = 0;   ///< nanoseconds of CPU
  int answered_in_window_ = 0;
  std::int64_t credit_ = 0;         ///< nanoseconds of CPU that were not spent
  std::uint64_t earned_until_ = 0;  ///< microseconds
};

}  // namespace sbx::supervise
