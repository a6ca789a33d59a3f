#pragma once

#include <signal.h>

#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "client/task.hpp"

namespace sbx::cli {

/// While it lives, signals to this process go to what it has started in a session.
class Forwarding {
 public:
  using Send = std::function<void(int signal)>;
  /// `parent`: a pidfd, whose end is SIGHUP; -1: nobody's is.
  Forwarding(EventLoop& loop, int parent, Send send);
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;
  ~Forwarding();

  [[nodiscard]] Status attach();
  /// From here on somebody takes them. What comes earlier is kept, but not for long: the session
  /// may be stopped, and nobody can then be asked.
  void begin();

 private:
  void on_signal();
  void on_end_of_parent();
  void wait_for_begin();
  void give_up_waiting();

  EventLoop& loop_;
  int parent_;
  Send send_;
  UniqueFd signals_;
  EventLoop::TimerId timer_ = EventLoop::kNoTimer;
  bool has_begun_ = false;
  bool is_orphan_ = false;
  sigset_t taken_{};
  sigset_t before_{};
};

/// Waits for the end of what a request begins; signals to this process go to it.
template <protocol::IsRequest Asked>
[[nodiscard]] Result<typename Asked::Answer> run_forwarding(
    session::Client connection, const Asked& request, std::span<const int> fds, int parent = -1,
    std::function<void(const typename client::Task<Asked>::Event& event)> event = {}) {
  EventLoop loop = SBX_TRY(EventLoop::make());
  std::optional<Result<typename Asked::Answer>> result;
  client::Task<Asked> task(std::move(connection), request);
  // Before the request: a call may run before its client hears of it.
  Forwarding forwarding(loop, parent, [&](int signal) { task.signal(signal); });
  SBX_TRY(task.attach(loop,
                      {.begun = [&](const auto& /*begun*/) { forwarding.begin(); },
                       .event = std::move(event),
                       .ended = [&](auto answer) { result.emplace(std::move(answer)); }},
                      fds));
  SBX_TRY(forwarding.attach());
  return client::run_until(loop, result);
}

}  // namespace sbx::cli
