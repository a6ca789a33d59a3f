#include "session/questions.hpp"

#include <chrono>
#include <utility>

namespace sbx::session {
namespace {

using namespace std::chrono_literals;

/// For a person who waits at a prompt.
constexpr auto kAnswersWithin = 1s;

}  // namespace

void Questions::accept(protocol::InspectRequest request, std::vector<UniqueFd> fds) {
  auto question = Inspection::receive(std::move(request), std::move(fds));
  if (!question) return session_.note(Note::What::answered);
  // A question does not wait for a cell or another question: its answer would come too late.
  if (cells_.is_ready() && !cells_.is_idle()) return answer(*question);
  queue_.push_back(std::move(*question));
  if (living_ && cells_.is_ready()) ask_next();
}

void Questions::ask_next() {
  while (!queue_.empty() && !cells_.is_held()) {
    Inspection& question = queue_.front();
    if (cells_.is_idle() && question.is_for_driver() && living_->driver.inspects) {
      cells_.hold();
      living_->channel.send_text(question.begin(living_->driver));
      deadline_ = living_->loop.after(kAnswersWithin, [this] { give_up(); });
      return;
    }
    answer(question);
    queue_.pop_front();
  }
}

bool Questions::take(const Json& message) {
  if (!cells_.is_held() || !queue_.front().take(message)) return false;
  answered();
  return true;
}

void Questions::stop() {
  if (living_) living_->loop.cancel(deadline_);
}

void Questions::end_all(const run::Answer& answer) {
  for (Inspection& each : queue_) {
    if (!answer.errors.empty()) each.answer(answer.errors.front());
    this->answer(each);
  }
}

void Questions::answer(Inspection& question) {
  question.answer(context_.language, context_.name, cells_.count());
  session_.note(Note::What::answered);
}

/// The client does without. The next cell goes ahead after the grace: if it is not answered either,
/// its own end decides.
void Questions::give_up() {
  queue_.front().answer(context_.language, context_.name, cells_.count());
  living_->interrupts.begin(Interrupts::Children::stay, [this] { answered(); });
}

void Questions::answered() {
  living_->loop.cancel(deadline_);
  living_->interrupts.end();
  answer(queue_.front());
  queue_.pop_front();
  cells_.release();
  ask_next();
}

}  // namespace sbx::session
