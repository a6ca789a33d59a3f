#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "protocol/requests.hpp"
#include "run/call.hpp"
#include "run/cell_output.hpp"
#include "run/launch.hpp"
#include "session/cell_sandbox.hpp"
#include "session/driver_channel.hpp"
#include "session/drivers.hpp"
#include "session/interrupts.hpp"
#include "session/open_cell.hpp"
#include "session/worker_process.hpp"
#include "session/worker_state.hpp"

namespace sbx::session {

/// What the worker of a context has from when its interpreter lives. All are borrowed.
struct LivingInterpreter {
  EventLoop& loop;
  DriverChannel& channel;
  Interrupts& interrupts;
  const Driver& driver;
};

/// The cells of a context, one after the other: from the session's packet through the interpreter
/// to the answer.
class CellTurns {
 public:
  /// All are borrowed.
  CellTurns(const ContextOfWorker& context, const run::CallName& call, CellSandbox& sandbox,
            const ToSession& session)
      : context_(context), call_(call), sandbox_(sandbox), session_(session) {}

  /// `out`, `err`: what the interpreter writes.
  [[nodiscard]] Status attach(const LivingInterpreter& interpreter, UniqueFd out, UniqueFd err);
  void take_of_cell(run::OfCell of_cell) { of_cell_ = std::move(of_cell); }
  /// The interpreter takes cells.
  void note_ready();
  [[nodiscard]] bool is_ready() const { return ready_; }

  /// One that the session has sent. `fds`: the client's.
  void accept(protocol::EvalRequest request, std::vector<UniqueFd> fds);
  /// `session interrupt`.
  void interrupt();
  /// Ends the interpreter; if a cell runs, it ends for this reason.
  void give_up(record::CellEnd end);

  /// Bytes have come that are not read yet.
  void note_arrival() { position_ = output_->delivered(); }
  /// Where a message stands among the output. To be asked once for each message.
  [[nodiscard]] run::OutputPosition position_of_message();
  /// False: the message is not what a driver says.
  [[nodiscard]] bool take(const Json& message, const run::OutputPosition& position);

  /// Nothing is asked of the interpreter.
  [[nodiscard]] bool is_idle() const { return phase_ == Phase::idle; }
  /// A question is asked: cells wait until release().
  void hold() { phase_ = Phase::inspecting; }
  void release();
  [[nodiscard]] bool is_held() const { return phase_ == Phase::inspecting; }

  /// The interpreter is dead: what it has said and written until then still belongs to the cell.
  void note_death();
  [[nodiscard]] bool is_dead() const { return phase_ == Phase::dead; }
  /// After its death: nothing is left to deliver.
  [[nodiscard]] bool is_delivered() const { return delivered_; }
  /// From here on cells only wait for end_all().
  void detach() { living_.reset(); }
  /// Answers the cells that end with their interpreter.
  void end_all(const run::Answer& answer);

  /// Cells that the interpreter was asked to run.
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// When the cell that runs began, of sys::now_microseconds().
  [[nodiscard]] std::uint64_t began_microseconds() const { return current_->began_microseconds; }
  /// Why the interpreter was killed; empty: it was not.
  [[nodiscard]] const std::string& unstopped() const { return unstopped_; }

 private:
  /// What the cell at the head of the queue, or the context without one, is doing.
  enum class Phase : std::uint8_t {
    idle,
    inspecting,  ///< a question is asked; cells wait
    preparing,   ///< what was written since the last cell is read away
    running,
    leaving,  ///< the interpreter has said that it ends with this cell
    closing,  ///< the cell is done: its output is delivered
    dead,     ///< the interpreter is
  };

  void client_said(int client);
  void next();
  void refuse(const Error& why);
  void send();
  void decide(record::CellEnd end);
  void end_waiting();
  void done(bool ended);
  void close();
  void finish();
  void keep_output(OpenCell& cell);
  void answer(OpenCell& cell);

  const ContextOfWorker& context_;
  const run::CallName& call_;
  CellSandbox& sandbox_;
  const ToSession& session_;
  std::optional<LivingInterpreter> living_;
  std::unique_ptr<run::CellOutput> output_;
  run::OfCell of_cell_;
  std::optional<run::OutputPosition> position_;  ///< of the message that is read next
  std::deque<OpenCell> queue_;
  std::optional<OpenCell> current_;
  Phase phase_ = Phase::idle;
  bool ready_ = false;
  bool prepared_ = false;  ///< the current cell has its output
  bool delivered_ = false;
  std::uint64_t count_ = 0;
  EventLoop::TimerId deadline_ = EventLoop::kNoTimer;
  std::string unstopped_;
};

}  // namespace sbx::session
