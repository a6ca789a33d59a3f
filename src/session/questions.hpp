#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/event_loop.hpp"
#include "base/json.hpp"
#include "base/unique_fd.hpp"
#include "protocol/requests.hpp"
#include "run/launch.hpp"
#include "session/cell_turns.hpp"
#include "session/inspection.hpp"

namespace sbx::session {

/// Questions about code that does not run, which the interpreter answers between cells.
class Questions {
 public:
  /// All are borrowed.
  Questions(const ContextOfWorker& context, const ToSession& session, CellTurns& cells)
      : context_(context), session_(session), cells_(cells) {}

  void attach(const LivingInterpreter& interpreter) { living_.emplace(interpreter); }
  /// One that the session has sent. `fds`: the client's.
  void accept(protocol::InspectRequest request, std::vector<UniqueFd> fds);
  /// Asks the driver one question while no cell wants it.
  void ask_next();
  /// False: the message answers none.
  [[nodiscard]] bool take(const Json& message);
  /// The interpreter is dead.
  void stop();
  void detach() { living_.reset(); }
  /// Answers those that are left.
  void end_all(const run::Answer& answer);

 private:
  void answer(Inspection& question);
  void give_up();
  void answered();

  const ContextOfWorker& context_;
  const ToSession& session_;
  CellTurns& cells_;
  std::optional<LivingInterpreter> living_;
  std::deque<Inspection> queue_;
  EventLoop::TimerId deadline_ = EventLoop::kNoTimer;
};

}  // namespace sbx::session
