#include "session/spare_interpreter.hpp"

#include <sys/socket.h>

#include <chrono>

#include "protocol/packet.hpp"
#include "session/worker_protocol.hpp"
#include "session/worker_state.hpp"

namespace sbx::session {
namespace {

using namespace std::chrono_literals;

/// Its client waits for the first cell.
constexpr auto kTellsWithin = 1s;

}  // namespace

void SpareInterpreter::note_start() {
  if (is_spare()) started_ = hooks_.find_start();
}

void SpareInterpreter::attach(EventLoop& loop, bool tells_changes) {
  loop_ = &loop;
  tells_changes_ = tells_changes;
}

void SpareInterpreter::note_ready() {
  is_ready_ = true;
  if (tells_changes_) hooks_.ask(R"({"op":"wait"})");
  if (state_ != State::claimed) return;
  loop_->cancel(deadline_);
  look_for_changes();
}

void SpareInterpreter::claim() {
  state_ = State::claimed;
  if (is_ready_) return look_for_changes();
  // A start that takes long may hang, in a file that another start would not find any more.
  deadline_ = loop_->after(kTellsWithin, [this] { replace(); });
}

void SpareInterpreter::take_answer(bool unchanged) {
  if (unchanged)
    become_context();
  else
    replace();
}

void SpareInterpreter::stop() {
  if (loop_ != nullptr) loop_->cancel(deadline_);
}

void SpareInterpreter::look_for_changes() {
  const auto now = hooks_.find_start();
  if (!now || !started_ || now->executable != started_->executable ||
      now->command != started_->command || now->environment != started_->environment)
    return replace();
  if (!tells_changes_) return become_context();
  hooks_.ask(R"({"op":"unchanged"})");
  deadline_ = loop_->after(kTellsWithin, [this] { replace(); });
}

void SpareInterpreter::replace() {
  loop_->cancel(deadline_);
  hooks_.end();
}

void SpareInterpreter::become_context() {
  loop_->cancel(deadline_);
  state_ = State::none;
  hooks_.become_context();
}

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

bool receive_late_claim(WorkerState& state) {
  Note note{};
  return ::recv(state.link.get(), &note, sizeof note, 0) == sizeof note &&
         note.what == Note::What::claim && receive_claim(state);
}

}  // namespace sbx::session
