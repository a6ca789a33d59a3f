#include "session/cell_turns.hpp"

#include <sys/epoll.h>

#include <chrono>
#include <tuple>
#include <utility>

#include "protocol/packet.hpp"
#include "session/cell_ends.hpp"

namespace sbx::session {
namespace {

using namespace std::chrono_literals;
using record::CellEnd;

/// After the interpreter said that it ends.
constexpr auto kEndsWithin = 2s;
/// For a reader that doesn't read, after the interpreter's end.
constexpr auto kLastWords = 1s;

}  // namespace

Status CellTurns::attach(const LivingInterpreter& interpreter, UniqueFd out, UniqueFd err) {
  living_.emplace(interpreter);
  output_ = std::make_unique<run::CellOutput>(living_->loop, std::move(out), std::move(err));
  return output_->begin({});
}

void CellTurns::note_ready() {
  ready_ = true;
  send();
}

void CellTurns::accept(protocol::EvalRequest request, std::vector<UniqueFd> fds) {
  auto cell = OpenCell::receive(std::move(request), std::move(fds));
  if (!cell) return session_.note(Note::What::answered);
  cell->name(context_, call_, sandbox_.degraded());
  cell->name_state(context_, count_);
  if (!living_) return (void)queue_.push_back(std::move(*cell));
  if (const Status right = cell->narrow(sandbox_.policy(), call_.session); !right) {
    cell->answer(right.error());
    return session_.note(Note::What::answered);
  }
  const int client = cell->client();
  queue_.push_back(std::move(*cell));
  (void)living_->loop.watch(client, EPOLLIN | EPOLLRDHUP,
                            [this, client](std::uint32_t) { client_said(client); });
  next();
}

void CellTurns::interrupt() {
  if (current_) decide(end_by_interrupt());
}

void CellTurns::give_up(CellEnd end) {
  if (current_) (void)current_->decide(std::move(end));
  sandbox_.end(Cancelled{SIGTERM});
}

/// The output before a message. That of the first one read was counted before the reading, because
/// its driver may have gone on since. A driver that did not wait has several read at once: the best
/// that is known is now.
run::OutputPosition CellTurns::position_of_message() {
  const auto counted = std::exchange(position_, std::nullopt);
  return counted ? *counted : output_->delivered();
}

bool CellTurns::take(const Json& message, const run::OutputPosition& position) {
  if (!current_ || !current_->said) return true;
  const CellAnswer::Said said = current_->said->take(message);
  switch (said) {
    case CellAnswer::Said::result:
    case CellAnswer::Said::clear:
    case CellAnswer::Said::place:
    case CellAnswer::Said::error:
      current_->tell(position);
      return true;
    case CellAnswer::Said::done:
      done(message.value("ended", Json()) == true);
      return true;
    case CellAnswer::Said::garbled:
      return false;
    case CellAnswer::Said::other:
      return true;
  }
  return true;
}

void CellTurns::release() {
  phase_ = Phase::idle;
  next();
}

void CellTurns::note_death() {
  const bool has_output = current_ && prepared_;
  phase_ = Phase::dead;
  end_waiting();
  living_->channel.take_rest();
  output_->complete([this, has_output] {
    if (has_output) keep_output(*current_);
    output_.reset();
    delivered_ = true;
  });
  living_->loop.after(kLastWords, [this] {
    if (output_) output_->abandon();
  });
}

void CellTurns::end_all(const run::Answer& answer) {
  if (current_) queue_.push_front(std::move(*current_));
  current_.reset();
  for (OpenCell& cell : std::exchange(queue_, {}))
    answer_at_end(cell, answer, ready_, context_.was_lost);
}

void CellTurns::client_said(int client) {
  auto packet = protocol::receive(client);
  if (!packet) living_->loop.forget(client);
  CellEnd end = packet ? end_by_client(std::move(packet->body)) : end_without_client();
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

void CellTurns::next() {
  if (phase_ != Phase::idle || queue_.empty()) return;
  current_.emplace(std::move(queue_.front()));
  queue_.pop_front();
  if (const Status hidden = sandbox_.look_for_denied_names(current_->record.degraded); !hidden)
    return refuse(hidden.error());
  phase_ = Phase::preparing;
  prepared_ = false;
  output_->complete([this] {
    // Threads went on after the cell before: what they wrote is shown with this one.
    auto [out, err] = output_->take();
    auto target = current_->target([this] { decide(end_by_output(current_->target({}, {}))); },
                                   [this] { decide(end_without_reader()); });
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
void CellTurns::refuse(const Error& why) {
  living_->loop.forget(current_->client());
  current_->answer(why);
  current_.reset();
  session_.note(Note::What::answered);
  next();
}

/// Once the interpreter is ready and the pipes are empty.
void CellTurns::send() {
  if (phase_ != Phase::preparing || !prepared_) return;
  if (current_->is_decided()) return close();
  if (!ready_) return;
  phase_ = Phase::running;
  current_->name_state(context_, count_);
  sandbox_.forget_memory_limit();
  current_->cpu_before = sandbox_.cpu_microseconds();
  living_->channel.send_text(current_->begin(++count_, living_->driver));
  if (const Milliseconds limit = current_->wall_time(); limit.count() > 0)
    deadline_ = living_->loop.after(limit, [this, limit] { decide(end_by_time(limit)); });
}

/// Interrupts the cell that runs; one that has answered already has ended so.
void CellTurns::decide(CellEnd end) {
  if (phase_ != Phase::preparing && phase_ != Phase::running) return;
  if (!current_->decide(std::move(end))) return;
  if (phase_ == Phase::preparing) return send();
  living_->loop.cancel(deadline_);
  living_->interrupts.begin(Interrupts::Children::end, [this] {
    unstopped_ = "the interpreter did not stop within 2 s after " + cause_of(current_->record.end);
    sandbox_.end(Cancelled{SIGINT});
  });
}

/// The cell has its answer, or there is none any more.
void CellTurns::end_waiting() {
  living_->loop.cancel(deadline_);
  living_->interrupts.end();
}

void CellTurns::done(bool ended) {
  end_waiting();
  if (phase_ != Phase::running) return;
  if (!ended) return close();
  phase_ = Phase::leaving;
  living_->loop.after(kEndsWithin, [this] {
    if (phase_ == Phase::leaving) sandbox_.end(Cancelled{SIGTERM});
  });
}

void CellTurns::close() {
  phase_ = Phase::closing;
  if (const Milliseconds limit = current_->wall_time(); limit.count() > 0)
    deadline_ = living_->loop.after(limit, [this] { output_->abandon(); });
  output_->complete([this] { finish(); });
}

void CellTurns::finish() {
  living_->loop.cancel(deadline_);
  keep_output(*current_);
  current_->record.cpu_ms =
      current_->said ? (sandbox_.cpu_microseconds() - current_->cpu_before) / 1000 : 0;
  sandbox_.renew_cpu_time();  // from here on it counts to the next cell
  current_->keep_findings(sandbox_, of_cell_);
  (void)output_->begin({});
  answer(*current_);
  current_.reset();
  phase_ = Phase::idle;
  next();
}

void CellTurns::keep_output(OpenCell& cell) {
  std::tie(cell.record.out, cell.record.err) = output_->take();
  cell.record.write_error = output_->write_error();
}

void CellTurns::answer(OpenCell& cell) {
  living_->loop.forget(cell.client());
  cell.answer();
  session_.note(Note::What::answered);
}

}  // namespace sbx::session
