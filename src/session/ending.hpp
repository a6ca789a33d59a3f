#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.hpp"
#include "base/unique_fd.hpp"
#include "session/worker_protocol.hpp"

namespace sbx::session {

/// How a session ends. Its calls are told to end, and have a time for it; those who follow their
/// output hear the rest; at an end that no command asked for, the changes are kept where somebody
/// wants them. Then it is over.
class Ending {
 public:
  struct Hooks {
    std::function<void(EndCause cause)> end_calls;  ///< once
    std::function<bool()> has_calls;
    std::function<bool()> all_is_told;  ///< to those who follow the output of calls
    std::function<bool()> is_reading;   ///< changes are read; look() is called after that
    /// Begins to keep the changes as this set; is_reading() then tells how long. False: it can't.
    std::function<bool(const std::string& set)> keep;
  };
  Ending(EventLoop& loop, Hooks hooks) : loop_(loop), hooks_(std::move(hooks)) {}

  /// At an end that nobody asked for. Empty: they go.
  void keep_as(std::string set) { keep_as_ = std::move(set); }
  /// By a command: it hears of the end, and has asked what becomes of the changes.
  void stop(UniqueFd connection);
  void begin(EndCause cause);
  /// The sandbox is dead: there is nobody to tell.
  void begin_without_calls();
  /// Goes on if nothing is waited for any more.
  void look();

  [[nodiscard]] bool has_begun() const { return begun_; }
  [[nodiscard]] bool is_over() const { return over_; }
  void tell_stoppers() const;

 private:
  void end_late();

  EventLoop& loop_;
  Hooks hooks_;
  std::string keep_as_;  ///< empty: nobody wants it, or it has begun
  std::vector<UniqueFd> stoppers_;
  EventLoop::TimerId looks_ = EventLoop::kNoTimer;
  bool begun_ = false;
  bool is_keeping_ = false;
  bool is_late_ = false;  ///< the calls have had their time
  bool over_ = false;
};

}  // namespace sbx::session
