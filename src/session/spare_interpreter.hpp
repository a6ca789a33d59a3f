#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "base/event_loop.hpp"
#include "plan/plan.hpp"

namespace sbx::session {

struct WorkerState;

/// In the worker of a spare: an interpreter that was started before its context. The context gets
/// it only where a start would make the same one now.
class SpareInterpreter {
 public:
  struct Hooks {
    /// What a start runs now: a program may have appeared on PATH.
    std::function<std::optional<plan::Plan>()> find_start;
    std::function<void(std::string_view message)> ask;  ///< the driver
    std::function<void()> become_context;
    std::function<void()> end;  ///< of this interpreter: the next one takes the cells
  };
  SpareInterpreter(bool is_spare, Hooks hooks)
      : state_(is_spare ? State::waits : State::none), hooks_(std::move(hooks)) {}

  /// It is nobody's, or it is not known whether its context gets it.
  [[nodiscard]] bool is_spare() const { return state_ != State::none; }
  [[nodiscard]] bool is_claimed() const { return state_ == State::claimed; }

  /// The interpreter starts now.
  void note_start();
  /// It lives. `tells_changes`: Driver::tells_changes.
  void attach(EventLoop& loop, bool tells_changes);
  void note_ready();
  /// The session has said which context it is for.
  void claim();
  /// The driver has said whether the files that its start has read are as they were.
  void take_answer(bool unchanged);
  /// The interpreter is dead.
  void stop();

 private:
  enum class State : std::uint8_t {
    none,
    waits,    ///< for its context
    claimed,  ///< it is not known whether it is what a start would make now
  };
  void look_for_changes();
  void replace();
  void become_context();

  State state_;
  Hooks hooks_;
  EventLoop* loop_ = nullptr;
  bool tells_changes_ = false;
  bool is_ready_ = false;
  std::optional<plan::Plan> started_;  ///< what it was started as
  EventLoop::TimerId deadline_ = EventLoop::kNoTimer;
};

/// Takes what the session says of the context that a spare becomes. False: the session is gone.
[[nodiscard]] bool receive_claim(WorkerState& state);
/// The same after the death of an interpreter that nobody had: the session may have sent the claim
/// already.
[[nodiscard]] bool receive_late_claim(WorkerState& state);

}  // namespace sbx::session
