#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "session/worker.hpp"
#include "session/worker_protocol.hpp"

namespace sbx::session {

/// The workers that no call has: some wait for the next one, as many as calls are often under way
/// together, and the others end.
class WorkerPool {
 public:
  struct Hooks {
    /// Starts one for this call, and waits for nothing. Errors: host.
    std::function<Result<Worker>(std::uint64_t call)> start;
    std::function<void()> sweep;  ///< removes the control groups that ended workers have left
  };
  WorkerPool(EventLoop& loop, Hooks hooks) : loop_(loop), hooks_(std::move(hooks)) {}

  /// What comes with a call; -1: it has none.
  struct Descriptors {
    const std::vector<UniqueFd>& streams;
    int client;
    int image;
  };
  /// Gives a call to one that waits, else to a new one. Errors: host.
  [[nodiscard]] Result<Worker> give(const Assignment& assignment, const Descriptors& descriptors);
  /// Its call has ended. It waits for another one for a minute.
  void keep(Worker worker);
  /// It ends by itself: the link is closed.
  void dismiss(Worker worker);
  /// It has been killed.
  void bury(const Worker& worker);
  /// From here on none waits for a call.
  void keep_no_more() { keeps_ = false; }
  /// All end, those of `running` too, and within a second. The sandbox is dead.
  void end(std::vector<Worker> running);

 private:
  /// The one that waits for the shortest time: its memory is in the caches.
  [[nodiscard]] Worker take();
  void waiting_ended(int process);
  void sweep_soon();

  EventLoop& loop_;
  Hooks hooks_;
  std::vector<Worker> waiting_;
  std::vector<Worker> leaving_;  ///< not reaped yet
  EventLoop::TimerId timer_ = EventLoop::kNoTimer;
  bool keeps_ = true;
};

}  // namespace sbx::session
