#include "session/context_worker.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "base/signals.hpp"
#include "base/sys.hpp"
#include "plan/call.hpp"
#include "record/words.hpp"
#include "run/call.hpp"
#include "session/cell_turns.hpp"
#include "session/context_orders.hpp"
#include "session/driver_channel.hpp"
#include "session/drivers.hpp"
#include "session/end_words.hpp"
#include "session/interpreter_start.hpp"
#include "session/interrupts.hpp"
#include "session/questions.hpp"
#include "session/spare_interpreter.hpp"
#include "session/supervised_cells.hpp"
#include "session/worker_process.hpp"

namespace sbx::session {
namespace {

using namespace std::chrono_literals;
using How = record::CellEnd::How;

/// From the start of the interpreter to its first word: imports on a busy machine included.
constexpr auto kStartsWithin = 60s;
/// After the interpreter closed its channel.
constexpr auto kGrace = 2s;

class ContextWorker {
 public:
  explicit ContextWorker(WorkerState& state)
      : state_(state),
        spare_(state.context.is_spare,
               {.find_start = [this] { return find_start(); },
                .ask = [this](std::string_view message) { channel_->send_text(message); },
                .become_context = [this] { become_context(); },
                .end = [this] { supervisor_->end(Cancelled{SIGTERM}); }}) {}

  /// False: it was a spare, and its context needs another interpreter.
  [[nodiscard]] bool run() {
    run::Answer answer = interpret();
    if (cancelled_ != nullptr && answer.outcome &&
        std::holds_alternative<Cancelled>(answer.outcome->verdict))
      answer.outcome->detail = cancelled_;
    if (spare_.is_spare()) {
      if (spare_.is_claimed()) return false;
      session_.note(Note::What::gone);
      return !receive_late_claim(state_);
    }
    leave();
    // Before the answers: who has one finds the context ended.
    session_.note(Note::What::ended, run::exit_status_of(answer),
                  {!cells_.unstopped().empty() ? cells_.unstopped()
                   : answer.outcome            ? record::end_with(*answer.outcome).detail
                                               : ""});
    questions_.end_all(answer);
    cells_.end_all(answer);
    return true;
  }

 private:
  run::Answer interpret() {
    const auto failed = [](Error error) {
      run::Answer answer;
      answer.errors = {std::move(error)};
      return answer;
    };
    auto start = prepare_interpreter(state_.context, state_.held.owner());
    if (!start) return failed(start.error());
    driver_ = &start->driver;
    channel_.emplace(std::move(start->channel));
    const run::Interpreter interpreter{
        .descriptors = start->descriptors,
        .take_output = [this](UniqueFd out, UniqueFd err) { take_output(out, err); },
        .delivers = [this] { return delivers(); }};
    program_ = start->request.program;
    spare_.note_start();
    start->request.started_microseconds = sys::now_microseconds();
    return run::call(state_.held, start->request, ties(interpreter));
  }

  run::CallTies ties(const run::Interpreter& interpreter) {
    return {
        .session = state_.name.session,
        .group = state_.group.get(),
        .interpreter = &interpreter,
        .began =
            [this](pid_t init) {
              init_ = init;
              session_.note(Note::What::began, init);
            },
        .live_in = [this](EventLoop& loop,
                          supervise::Supervisor& supervisor) { return live_in(loop, supervisor); },
        .take_of_cell = [this](run::OfCell of_cell) { cells_.take_of_cell(std::move(of_cell)); },
        .expect = [this](const auto& address, auto port) { session_.expect(address, port); },
        .trouble = [this] { return session_.trouble(); },
        .most_processes = [this] { return session_.most_processes(); }};
  }

  void take_output(UniqueFd& out, UniqueFd& err) {
    out_ = std::move(out);
    err_ = std::move(err);
  }

  Status live_in(EventLoop& loop, supervise::Supervisor& supervisor) {
    loop_ = &loop;
    supervisor_ = sandbox_.supervisor = &supervisor;
    interrupts_.emplace(
        loop, Interrupts::Signals{.interrupt = [this] { supervisor_->signal_group(SIGINT); },
                                  .unheard =
                                      [this] {
                                        if (driver_->unheard_signal != 0)
                                          supervisor_->signal_main(driver_->unheard_signal);
                                      },
                                  .end_children =
                                      [this] {
                                        supervise::Supervisor::kill_foreground(
                                            init_, cells_.began_microseconds());
                                      }});
    const LivingInterpreter living{
        .loop = loop, .channel = *channel_, .interrupts = *interrupts_, .driver = *driver_};
    channel_->close_driver_ends();
    SBX_TRY(cells_.attach(living, std::move(out_), std::move(err_)));
    questions_.attach(living);
    spare_.attach(loop, driver_->tells_changes);
    SBX_TRY(channel_->attach(loop, {.arrived = [this] { cells_.note_arrival(); },
                                    .message = [this](const Json& message) { on_message(message); },
                                    .broken = [this](const std::string& why) { broken(why); }}));
    start_ = loop.after(kStartsWithin, [this] {
      cells_.give_up({.how = How::died, .detail = "the interpreter did not begin within a minute"});
    });
    return loop.watch(state_.link.get(), EPOLLIN, [this](std::uint32_t) { orders_.take(); });
  }

  /// Only the supervisor knows whether the interpreter is dead. One that merely closed the channel
  /// is of no use.
  void broken(const std::string& why) {
    if (!why.empty()) return cells_.give_up({.how = How::died, .detail = why});
    loop_->after(kGrace, [this] {
      if (!cells_.is_dead())
        cells_.give_up(
            {.how = How::died, .detail = "the interpreter closed the channel of its answers"});
    });
  }

  /// A driver that can't see whether its pipes are empty waits for an answer, so that what it
  /// writes next comes after the place. One that asks without reading the answers gets no more of
  /// them.
  void on_message(const Json& message) {
    take(message);
    if (message["event"] == "place" && channel_->sent_all())
      channel_->send_text(R"({"op":"go on"})");
  }

  void take(const Json& message) {
    const run::OutputPosition position = cells_.position_of_message();
    if (message["event"] == "ready" && !cells_.is_ready()) return begin();
    if (message["event"] == "interrupted") return interrupts_->heard();
    if (message["event"] == "unchanged" && spare_.is_claimed())
      return spare_.take_answer(message.value("unchanged", Json()) == true);
    if (questions_.take(message)) return;
    if (!cells_.take(message, position))
      broken("the interpreter's answers are not those of its driver");
  }

  /// The interpreter takes cells.
  void begin() {
    loop_->cancel(start_);
    if (!spare_.is_spare()) session_.note(Note::What::ready);
    cells_.note_ready();
    if (spare_.is_spare()) return spare_.note_ready();
    questions_.ask_next();
  }

  // --- a spare

  /// What a start of the interpreter runs now: a program may have appeared on PATH.
  [[nodiscard]] std::optional<plan::Plan> find_start() const {
    auto plan = plan::make_call_plan(state_.held.plan(), state_.held.policy(), state_.held.host(),
                                     program_, plan::CallProgram::interpreter);
    return plan ? std::optional(std::move(*plan)) : std::nullopt;
  }

  void claim() {
    loop_->forget(state_.link.get());  // cells wait there
    if (!receive_claim(state_)) return supervisor_->end(Cancelled{SIGTERM});
    spare_.claim();
  }

  void become_context() {
    session_.note(Note::What::ready);
    if (!loop_->watch(state_.link.get(), EPOLLIN, [this](std::uint32_t) { orders_.take(); }))
      supervisor_->end(Cancelled{SIGTERM});
  }

  void link_closed() {
    loop_->forget(state_.link.get());
    if (spare_.is_spare() && !spare_.is_claimed()) supervisor_->end(Cancelled{SIGTERM});
  }

  ContextOrders::Hooks hooks_of_orders() {
    return {.cell = [this](auto request,
                           auto fds) { cells_.accept(std::move(request), std::move(fds)); },
            .question = [this](auto request,
                               auto fds) { questions_.accept(std::move(request), std::move(fds)); },
            .garbled = [this] { session_.note(Note::What::answered); },
            .interrupt = [this] { cells_.interrupt(); },
            .spend = [this](Budget budget) { supervisor_->spend(budget); },
            .signal = [this](int signal) { supervisor_->signal_main(signal); },
            .cancel =
                [this](EndCause cause) {
                  cancelled_ = words_of_end(cause);
                  supervisor_->cancel(SIGTERM);
                },
            .end = [this] { supervisor_->end(Cancelled{SIGTERM}); },
            .claim = [this] { claim(); },
            .closed = [this] { link_closed(); }};
  }

  // --- the end

  /// True until all is delivered.
  bool delivers() {
    if (cells_.is_dead()) return !cells_.is_delivered();
    spare_.stop();
    questions_.stop();
    loop_->cancel(start_);
    cells_.note_death();
    return true;
  }

  /// From here on the session learns that cells are for another one.
  void leave() {
    cells_.detach();
    questions_.detach();
    (void)::shutdown(state_.link.get(), SHUT_RD);
    orders_.take_cells();
  }

  const char* cancelled_ = nullptr;
  WorkerState& state_;
  const ToSession session_{state_.link, state_.ask};
  ContextOrders orders_{state_.link.get(), hooks_of_orders()};
  SupervisedCells sandbox_{state_};
  CellTurns cells_{state_.context, state_.name, sandbox_, session_};
  Questions questions_{state_.context, session_, cells_};
  SpareInterpreter spare_;
  const Driver* driver_ = nullptr;
  std::optional<DriverChannel> channel_;
  UniqueFd out_;
  UniqueFd err_;
  EventLoop* loop_ = nullptr;
  supervise::Supervisor* supervisor_ = nullptr;
  plan::RunRequest program_;
  EventLoop::TimerId start_ = EventLoop::kNoTimer;
  std::optional<Interrupts> interrupts_;  ///< from when the interpreter lives
  pid_t init_ = -1;
};

}  // namespace

void work_as_context(WorkerState state) {
  signals::take_defaults();
  state.group = state.held.make_call_group();
  while (!ContextWorker(state).run()) {
    state.context.is_spare = false;
    state.group.reset();
    state.group = state.held.make_call_group();
  }
  state.group.reset();
  // Without destructors: they would end the session's sandbox, of which this process has a copy.
  ::_exit(0);
}

}  // namespace sbx::session
