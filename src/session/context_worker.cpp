#include "session/context_worker.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <variant>

#include "base/message.hpp"
#include "base/signals.hpp"
#include "base/sys.hpp"
#include "plan/call.hpp"
#include "protocol/packet.hpp"
#include "record/words.hpp"
#include "run/call.hpp"
#include "run/cell_output.hpp"
#include "session/driver_channel.hpp"
#include "session/drivers.hpp"
#include "session/inspection.hpp"
#include "session/interrupts.hpp"
#include "session/open_cell.hpp"
#include "session/worker_process.hpp"

namespace sbx::session {
namespace {

using namespace std::chrono_literals;
using record::CellEnd;
using record::CellState;
using How = record::CellEnd::How;

/// From the start of the interpreter to its first word: imports on a busy machine included.
constexpr auto kStartsWithin = 60s;
/// After the interpreter said that it ends, or closed its channel.
constexpr auto kGrace = 2s;
/// For a person who waits at a prompt.
constexpr auto kInspectsWithin = 1s;
/// For a reader that doesn't read, after the interpreter's end.
constexpr auto kLastWords = 1s;

/// What the session says of the context that a spare becomes. False: the session is gone.
bool receive_claim(WorkerState& state) {
  auto packet = protocol::receive(state.link.get());
  if (!packet) return false;
  auto claim = read_fields<Claim>(std::move(packet->body));
  if (!claim) return false;
  state.name.number = claim->call;
  state.context.name = std::move(claim->context);
  state.context.was_lost = claim->was_lost;
  state.context.lost_because = std::move(claim->lost_because);
  return true;
}

class ContextWorker {
 public:
  explicit ContextWorker(WorkerState& state)
      : state_(state),
        language_(state.context.language),
        spare_(state.context.is_spare ? Spare::waits : Spare::no) {}

  /// False: it was a spare, and its context needs another interpreter.
  [[nodiscard]] bool run() {
    const run::Answer answer = interpret();
    if (spare_ != Spare::no) return spare_ == Spare::waits && !is_claimed_late();
    leave();
    // Before the answers: who has one finds the context ended.
    session_.note(Note::What::ended, run::exit_status_of(answer),
                  !unstopped_.empty() ? unstopped_
                  : answer.outcome    ? record::end_with(*answer.outcome).detail
                                      : "");
    for (Inspection& each : questions_) {
      if (!answer.errors.empty()) each.answer(answer.errors.front());
      answer_question(each);
    }
    for (OpenCell& cell : take_cells()) end(cell, answer);
    return true;
  }

 private:
  /// What the cell at the head of the queue, or the context without one, is doing.
  enum class Phase : std::uint8_t {
    idle,
    inspecting,  ///< a question is asked; cells wait
    preparing,   ///< what was written since the last cell is read away
    running,
    leaving,  ///< the interpreter has said that it ends with this cell
    closing,  ///< the cell is done: its output is delivered
    ended,    ///< the interpreter is dead
  };

  enum class Spare : std::uint8_t {
    no,
    waits,    ///< for its context
    claimed,  ///< it is not known whether it is what a start would make now
  };

  // --- the interpreter

  run::Answer interpret() {
    const auto failed = [](Error error) {
      run::Answer answer;
      answer.errors = {std::move(error)};
      return answer;
    };
    const auto driver = find_driver(language_);
    if (!driver) return failed(driver.error());
    driver_ = *driver;
    auto channel = DriverChannel::make(state_.held.owner());
    if (!channel) return failed(channel.error());
    channel_.emplace(std::move(*channel));
    const auto text = file_of(*driver_);
    if (!text) return failed(text.error());
    run::Interpreter interpreter{
        .descriptors = channel_->driver_ends(),
        .take_output = [this](UniqueFd out, UniqueFd err) { take_output(out, err); },
        .delivers = [this] { return delivers(); }};
    if (text->valid()) interpreter.descriptors.push_back(text->get());
    run::Request request;
    request.program.language = language_;
    request.program.operands = arguments_of(*driver_);
    request.program.directory = state_.context.directory;
    request.program.stdin_mode = plan::StdinMode::null;
    request.capture = true;  // two pipes, whatever this process has as its own
    program_ = request.program;
    if (spare_ != Spare::no) start_ahead_ = find_start();
    request.started_microseconds = sys::now_microseconds();
    return run::call(state_.held, request, ties(interpreter));
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
        .take_of_cell = [this](run::OfCell of_cell) { of_cell_ = std::move(of_cell); },
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
    supervisor_ = &supervisor;
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
                                            init_, current_->began_microseconds);
                                      }});
    output_ = std::make_unique<run::CellOutput>(loop, std::move(out_), std::move(err_));
    channel_->close_driver_ends();
    SBX_TRY(output_->begin({}));
    SBX_TRY(channel_->attach(loop, {.arrived = [this] { position_ = output_->delivered(); },
                                    .message = [this](const Json& message) { on_message(message); },
                                    .broken = [this](const std::string& why) { broken(why); }}));
    start_ = loop.after(kStartsWithin, [this] {
      give_up({.how = How::died, .detail = "the interpreter did not begin within a minute"});
    });
    return loop.watch(state_.link.get(), EPOLLIN, [this](std::uint32_t) { handle_order(); });
  }

  void handle_order() {
    Note note{};
    if (::recv(state_.link.get(), &note, sizeof note, 0) != sizeof note) {
      loop_->forget(state_.link.get());
      if (spare_ == Spare::waits) supervisor_->end(Cancelled{SIGTERM});
      return;
    }
    switch (note.what) {
      case Note::What::cell:
        return accept();
      case Note::What::interrupt:
        if (current_)
          decide({.how = How::interrupted,
                  .signal = SIGINT,
                  .detail = "interrupted by sbx session interrupt"});
        return;
      case Note::What::spend:
        return supervisor_->spend(static_cast<Budget>(note.value));
      case Note::What::signal:
        return supervisor_->signal_main(note.value);
      case Note::What::cancel:
        return supervisor_->cancel(SIGTERM);
      case Note::What::end:
        return supervisor_->end(Cancelled{SIGTERM});
      case Note::What::claim:
        return claim();
      case Note::What::began:
      case Note::What::ended:
      case Note::What::ready:
      case Note::What::answered:
      case Note::What::gone:
      case Note::What::call:
        return;
    }
  }

  /// Ends the interpreter; if a cell runs, it ends for this reason.
  void give_up(CellEnd end) {
    if (current_) (void)current_->decide(std::move(end));
    supervisor_->end(Cancelled{SIGTERM});
  }

  /// Only the supervisor knows whether the interpreter is dead. One that merely closed the channel
  /// is of no use.
  void broken(const std::string& why) {
    if (!why.empty()) return give_up({.how = How::died, .detail = why});
    loop_->after(kGrace, [this] {
      if (phase_ != Phase::ended)
        give_up({.how = How::died, .detail = "the interpreter closed the channel of its answers"});
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
    const run::OutputPosition position = position_of_message();
    if (message["event"] == "ready" && !ready_) {
      ready_ = true;
      loop_->cancel(start_);
      if (spare_ != Spare::no) return begin_to_wait();
      session_.note(Note::What::ready);
      send();
      return ask_next();
    }
    if (message["event"] == "interrupted") return interrupts_->heard();
    if (message["event"] == "unchanged" && spare_ == Spare::claimed)
      return message.value("unchanged", Json()) == true ? begin_as_context() : replace();
    if (phase_ == Phase::inspecting && questions_.front().take(message)) return inspected();
    if (!current_ || !current_->said) return;
    const CellAnswer::Said said = current_->said->take(message);
    switch (said) {
      case CellAnswer::Said::result:
      case CellAnswer::Said::clear:
      case CellAnswer::Said::place:
      case CellAnswer::Said::error:
        return current_->tell(said, position);
      case CellAnswer::Said::done:
        return done(message.value("ended", Json()) == true);
      case CellAnswer::Said::garbled:
        return broken("the interpreter's answers are not those of its driver");
      case CellAnswer::Said::other:
        return;
    }
  }

  /// The output before a message. That of the first one read was counted before the reading,
  /// because its driver may have gone on since. A driver that did not wait has several read at
  /// once: the best that is known is now.
  run::OutputPosition position_of_message() {
    const auto counted = std::exchange(position_, std::nullopt);
    return counted ? *counted : output_->delivered();
  }

  // --- a spare

  /// What a start of the interpreter runs now: a program may have appeared on PATH.
  [[nodiscard]] std::optional<plan::Plan> find_start() const {
    auto plan = plan::make_call_plan(state_.held.plan(), state_.held.policy(), state_.held.host(),
                                     program_, plan::CallProgram::interpreter);
    return plan ? std::optional(std::move(*plan)) : std::nullopt;
  }

  void begin_to_wait() {
    if (driver_->tells_changes) channel_->send_text(R"({"op":"wait"})");
    if (spare_ != Spare::claimed) return;
    loop_->cancel(deadline_);
    look_for_changes();
  }

  void claim() {
    loop_->forget(state_.link.get());  // cells wait there
    if (!receive_claim(state_)) return supervisor_->end(Cancelled{SIGTERM});
    spare_ = Spare::claimed;
    if (ready_) return look_for_changes();
    // A start that takes long may hang, in a file that another start would not find any more.
    deadline_ = loop_->after(kInspectsWithin, [this] { replace(); });
  }

  void look_for_changes() {
    const auto now = find_start();
    if (!now || !start_ahead_ || now->executable != start_ahead_->executable ||
        now->command != start_ahead_->command || now->environment != start_ahead_->environment)
      return replace();
    if (!driver_->tells_changes) return begin_as_context();
    channel_->send_text(R"({"op":"unchanged"})");
    deadline_ = loop_->after(kInspectsWithin, [this] { replace(); });
  }

  /// Ends this interpreter: run() says so, and the next one takes the cells.
  void replace() {
    loop_->cancel(deadline_);
    supervisor_->end(Cancelled{SIGTERM});
  }

  void begin_as_context() {
    loop_->cancel(deadline_);
    spare_ = Spare::no;
    session_.note(Note::What::ready);
    if (!loop_->watch(state_.link.get(), EPOLLIN, [this](std::uint32_t) { handle_order(); }))
      supervisor_->end(Cancelled{SIGTERM});
  }

  /// After the end of an interpreter that nobody had: the session may have sent the claim already.
  [[nodiscard]] bool is_claimed_late() const {
    session_.note(Note::What::gone);
    Note note{};
    return ::recv(state_.link.get(), &note, sizeof note, 0) == sizeof note &&
           note.what == Note::What::claim && receive_claim(state_);
  }

  // --- cells

  /// A cell or a question, which follows its note.
  void accept() {
    auto packet = protocol::receive(state_.link.get());
    if (!packet) return;  // the session sees that it was too late
    auto request = protocol::request_from(std::move(packet->body));
    if (!request) return session_.note(Note::What::answered);
    if (auto* const question = std::get_if<protocol::InspectRequest>(&*request))
      return inspect(std::move(*question), std::move(packet->fds));
    auto* const asked = std::get_if<protocol::EvalRequest>(&*request);
    if (asked == nullptr) return session_.note(Note::What::answered);
    auto cell = OpenCell::receive(std::move(*asked), std::move(packet->fds));
    if (!cell) return session_.note(Note::What::answered);
    name(*cell);
    if (loop_ == nullptr) return (void)queue_.push_back(std::move(*cell));
    if (const Status right = cell->narrow(state_.held.policy(), state_.name.session); !right) {
      cell->answer(right.error());
      return session_.note(Note::What::answered);
    }
    const int client = cell->client();
    queue_.push_back(std::move(*cell));
    (void)loop_->watch(client, EPOLLIN | EPOLLRDHUP,
                       [this, client](std::uint32_t) { client_said(client); });
    next();
  }

  void name(OpenCell& cell) const {
    cell.record.name = state_.name;
    cell.record.context = state_.context.name;
    cell.record.language = language_;
    cell.record.degraded = state_.held.plan().degraded;
    name_state(cell);
  }

  /// Of what the cell can find, if it runs now.
  void name_state(OpenCell& cell) const {
    const bool finds_nothing = count_ == 0 && state_.context.was_lost;
    cell.record.state = count_ > 0      ? CellState::kept
                        : finds_nothing ? CellState::lost
                                        : CellState::fresh;
    cell.record.lost_because = finds_nothing ? state_.context.lost_because : "";
  }

  // --- questions about code that does not run

  void inspect(protocol::InspectRequest request, std::vector<UniqueFd> fds) {
    auto question = Inspection::receive(std::move(request), std::move(fds));
    if (!question) return session_.note(Note::What::answered);
    // A question does not wait for a cell or another question: its answer would come too late.
    if (ready_ && phase_ != Phase::idle) return answer_question(*question);
    questions_.push_back(std::move(*question));
    if (loop_ != nullptr && ready_) ask_next();
  }

  /// Asks the driver one question while no cell wants it.
  void ask_next() {
    while (!questions_.empty() && phase_ != Phase::inspecting) {
      Inspection& question = questions_.front();
      if (phase_ == Phase::idle && question.is_for_driver() && driver_->inspects) {
        phase_ = Phase::inspecting;
        channel_->send_text(question.begin(*driver_));
        deadline_ = loop_->after(kInspectsWithin, [this] { stop_inspecting(); });
        return;
      }
      answer_question(question);
      questions_.pop_front();
    }
  }

  void answer_question(Inspection& question) {
    question.answer(language_, state_.context.name, count_);
    session_.note(Note::What::answered);
  }

  /// The client does without. The next cell goes ahead after the grace: if it is not answered
  /// either, its own end decides.
  void stop_inspecting() {
    questions_.front().answer(language_, state_.context.name, count_);
    interrupts_->begin(Interrupts::Children::stay, [this] { inspected(); });
  }

  void inspected() {
    end_waiting();
    answer_question(questions_.front());
    questions_.pop_front();
    phase_ = Phase::idle;
    next();
    ask_next();
  }

  void client_said(int client) {
    auto packet = protocol::receive(client);
    if (!packet) loop_->forget(client);
    const int signal = packet ? read_fields<protocol::CancelMessage>(std::move(packet->body))
                                    .value_or(protocol::CancelMessage{.cancel = SIGINT})
                                    .cancel
                              : SIGHUP;
    CellEnd end{.how = How::cancelled, .signal = signal};
    if (!packet) end.detail = "its client has gone";
    if (current_ && current_->client() == client) {
      if (phase_ == Phase::closing && !packet) return output_->abandon();
      // As of a run, a second cancellation does not wait.
      if (current_->is_decided() && packet) {
        unstopped_ = "a cell was cancelled twice";
        return give_up(std::move(end));
      }
      return decide(std::move(end));
    }
    for (auto each = queue_.begin(); each != queue_.end(); ++each) {
      if (each->client() != client) continue;
      (void)each->decide(std::move(end));
      answer(*each);
      queue_.erase(each);
      return;
    }
  }

  void next() {
    if (phase_ != Phase::idle || queue_.empty()) return;
    current_.emplace(std::move(queue_.front()));
    queue_.pop_front();
    if (const Status hidden = state_.held.look_for_denied_names(current_->record.degraded); !hidden)
      return refuse(hidden.error());
    phase_ = Phase::preparing;
    prepared_ = false;
    output_->complete([this] {
      // Threads went on after the cell before: what they wrote is shown with this one.
      auto [out, err] = output_->take();
      auto target = current_->target([this] { output_exceeded(); }, [this] { reader_left(); });
      target.late_out = std::move(out.text).value_or("");
      target.late_err = std::move(err.text).value_or("");
      current_->record.late_bytes =
          out.bytes + err.bytes - target.late_out.size() - target.late_err.size();
      (void)output_->begin(target);
      prepared_ = true;
      send();
    });
  }

  /// Nothing of the cell has begun.
  void refuse(const Error& why) {
    loop_->forget(current_->client());
    current_->answer(why);
    current_.reset();
    session_.note(Note::What::answered);
    next();
  }

  /// Once the interpreter is ready and the pipes are empty.
  void send() {
    if (phase_ != Phase::preparing || !prepared_) return;
    if (current_->is_decided()) return close();
    if (!ready_) return;
    phase_ = Phase::running;
    name_state(*current_);
    if (state_.group != nullptr) state_.group->forget_memory_limit();  // of former cells and calls
    current_->cpu_before = supervisor_->cpu_microseconds();
    channel_->send_text(current_->begin(++count_, *driver_));
    if (const Milliseconds limit = current_->wall_time(); limit.count() > 0)
      deadline_ = loop_->after(limit, [this, limit] {
        decide({.how = How::over_budget,
                .budget = Budget::wall_time,
                .detail = "wall-time budget of " + describe(limit) + " spent (limits.wall_time)"});
      });
  }

  void output_exceeded() {
    const run::CellOutput::Target target = current_->target({}, {});
    decide({.how = How::over_budget,
            .budget = Budget::output,
            .detail = target.capture ? "more than output.stdout or output.stderr written, with "
                                       "output.exceed = \"kill\""
                                     : "more than " + describe(target.caps->passed.value) +
                                           " written to stdout or stderr (output.passed)"});
  }

  /// As SIGPIPE ends a call.
  void reader_left() {
    decide({.how = How::cancelled,
            .signal = SIGPIPE,
            .detail = "cancelled by SIGPIPE (the reader of its output has left)"});
  }

  /// Interrupts the cell that runs; one that has answered already has ended so.
  void decide(CellEnd end) {
    if (phase_ != Phase::preparing && phase_ != Phase::running) return;
    if (!current_->decide(std::move(end))) return;
    if (phase_ == Phase::preparing) return send();
    loop_->cancel(deadline_);
    interrupts_->begin(Interrupts::Children::end, [this] {
      unstopped_ =
          "the interpreter did not stop within 2 s after " + cause_of(current_->record.end);
      supervisor_->end(Cancelled{SIGINT});
    });
  }

  /// Why the interpreter had to stop, for whoever finds its state lost.
  static std::string cause_of(const CellEnd& end) {
    switch (end.how) {
      case How::over_budget:
        return "a cell had spent its " +
               std::string(name_of(end.budget.value_or(Budget::wall_time)));
      case How::interrupted:
        return "sbx session interrupt";
      default:
        return end.detail.empty()
                   ? "a cell was cancelled by " + record::signal_name(end.signal.value_or(SIGINT))
                   : "a cell was cancelled: " + end.detail;
    }
  }

  /// The cell has its answer, or there is none any more.
  void end_waiting() {
    loop_->cancel(deadline_);
    interrupts_->end();
  }

  void done(bool ended) {
    end_waiting();
    if (phase_ != Phase::running) return;
    if (!ended) return close();
    phase_ = Phase::leaving;
    loop_->after(kGrace, [this] {
      if (phase_ == Phase::leaving) supervisor_->end(Cancelled{SIGTERM});
    });
  }

  void close() {
    phase_ = Phase::closing;
    if (const Milliseconds limit = current_->wall_time(); limit.count() > 0)
      deadline_ = loop_->after(limit, [this] { output_->abandon(); });
    output_->complete([this] { finish(); });
  }

  void finish() {
    loop_->cancel(deadline_);
    keep_output(*current_);
    current_->record.cpu_ms =
        current_->said ? (supervisor_->cpu_microseconds() - current_->cpu_before) / 1000 : 0;
    supervisor_->renew_cpu_time();  // from here on it counts to the next cell
    current_->record.denials = supervisor_->take_denials();
    current_->record.limits_met = supervisor_->take_limits_met(current_->status());
    run::NetworkTrouble network = of_cell_.attempts();
    std::ranges::move(network.refused, std::back_inserter(current_->record.denials));
    current_->record.network_failures = std::move(network.failed);
    current_->explain(of_cell_);
    (void)output_->begin({});
    answer(*current_);
    current_.reset();
    phase_ = Phase::idle;
    next();
  }

  void keep_output(OpenCell& cell) {
    std::tie(cell.record.out, cell.record.err) = output_->take();
    cell.record.write_error = output_->write_error();
  }

  void answer(OpenCell& cell) {
    loop_->forget(cell.client());
    cell.answer();
    session_.note(Note::What::answered);
  }

  // --- the end

  /// The interpreter is dead: what it has said and written until then still belongs to the cell.
  bool delivers() {
    if (phase_ == Phase::ended) return !delivered_;
    const bool has_output = current_ && prepared_;
    phase_ = Phase::ended;
    end_waiting();
    loop_->cancel(start_);
    channel_->take_rest();
    output_->complete([this, has_output] {
      if (has_output) keep_output(*current_);
      output_.reset();
      delivered_ = true;
    });
    loop_->after(kLastWords, [this] {
      if (output_) output_->abandon();
    });
    return true;
  }

  /// From here on the session learns that cells are for another one.
  void leave() {
    loop_ = nullptr;
    (void)::shutdown(state_.link.get(), SHUT_RD);
    for (;;) {
      Note note{};
      if (::recv(state_.link.get(), &note, sizeof note, 0) != sizeof note) return;
      if (note.what == Note::What::cell) accept();
    }
  }

  std::deque<OpenCell> take_cells() {
    std::deque<OpenCell> all = std::move(queue_);
    if (current_) all.push_front(std::move(*current_));
    current_.reset();
    return all;
  }

  /// A cell that ends with its interpreter. One that waited for the interpreter to start ended by
  /// the same cause.
  void end(OpenCell& cell, const run::Answer& answer) {
    const bool was_its_own = cell.said || !ready_;
    if (!answer.errors.empty()) return cell.answer(answer.errors.front());
    if (ready_ || state_.context.was_lost)
      cell.record.state = CellState::lost;  // else there was nothing
    if (cell.said && cell.said->is_done()) {
      // Its answer stands.
    } else if (was_its_own && answer.outcome) {
      (void)cell.decide(record::end_with(*answer.outcome));
    } else {
      (void)cell.decide({.how = How::cancelled,
                         .signal = SIGTERM,
                         .detail = "the context ended before it was this cell's turn"});
    }
    if (answer.outcome && was_its_own) {
      const Usage& used = answer.outcome->usage;
      cell.record.denials = answer.outcome->denials;
      cell.record.limits_met = answer.outcome->limits_met;
      cell.record.network_failures = answer.outcome->network_failures;
      cell.record.cpu_ms = used.user_ms + used.system_ms -
                           std::min(used.user_ms + used.system_ms, cell.cpu_before / 1000);
    }
    cell.answer();
  }

  WorkerState& state_;
  const std::string language_;
  const ToSession session_{state_.link, state_.ask};
  const Driver* driver_ = nullptr;
  std::optional<DriverChannel> channel_;
  UniqueFd out_;
  UniqueFd err_;
  EventLoop* loop_ = nullptr;
  supervise::Supervisor* supervisor_ = nullptr;
  std::unique_ptr<run::CellOutput> output_;
  run::OfCell of_cell_;
  std::optional<run::OutputPosition> position_;  ///< of the message that is read next
  std::deque<OpenCell> queue_;
  std::optional<OpenCell> current_;
  std::deque<Inspection> questions_;
  Phase phase_ = Phase::idle;
  Spare spare_;
  plan::RunRequest program_;
  std::optional<plan::Plan> start_ahead_;  ///< of a spare: what it was started as
  bool ready_ = false;
  bool prepared_ = false;  ///< the current cell has its output
  bool delivered_ = false;
  std::uint64_t count_ = 0;
  EventLoop::TimerId start_ = EventLoop::kNoTimer;
  EventLoop::TimerId deadline_ = EventLoop::kNoTimer;
  std::optional<Interrupts> interrupts_;  ///< from when the interpreter lives
  std::string unstopped_;                 ///< why the interpreter was killed; empty: it was not
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
