#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.hpp"
#include "client/task.hpp"
#include "session/start.hpp"

namespace sbx::client {

/// A session that starts. Its process is a copy of this one and outlives it: fork() is called while
/// this process has one thread and knows nothing that the session may not know.
class Start {
 public:
  using Ended = Result<protocol::SessionFacts>;
  struct Hooks {
    std::function<void(Ended ended)> ended;  ///< it takes calls, or why it does not
  };

  /// `name`: empty for one of its own making. `request`: as for session::start(). Errors: usage
  /// "bad-session-name", host.
  [[nodiscard]] static Result<std::unique_ptr<Start>> fork(std::string name, run::Request request);
  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;
  /// Cancels a start that has not ended.
  ~Start();

  [[nodiscard]] Status attach(EventLoop& loop, Hooks hooks);
  /// The last hook is then called once nothing of the session is left.
  void cancel();
  /// For who does nothing else: waits for the end.
  [[nodiscard]] Ended run();

 private:
  explicit Start(session::Starting starting) : starting_(std::move(starting)) {}
  void hear();
  void await_death(Error error);
  void end(Ended ended);

  session::Starting starting_;
  Hooks hooks_;
  EventLoop* loop_ = nullptr;
  EventLoop::TimerId timer_ = EventLoop::kNoTimer;
  std::optional<Error> error_;  ///< its process is about to end
};

}  // namespace sbx::client
