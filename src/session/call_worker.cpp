#include "session/call_worker.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>

#include "base/signals.hpp"
#include "base/sys.hpp"
#include "protocol/packet.hpp"
#include "record/event_writer.hpp"
#include "record/record.hpp"
#include "record/words.hpp"
#include "run/call.hpp"
#include "session/call_assignment.hpp"
#include "session/end_words.hpp"
#include "session/worker_process.hpp"
#include "session/worker_protocol.hpp"

namespace sbx::session {
namespace {

class CallWorker {
 public:
  explicit CallWorker(WorkerState& state) : state_(state) {}

  /// `null`: the null device.
  void run(int null) {
    request_.call = state_.name;
    request_.started_microseconds = sys::now_microseconds();
    const bool silent = state_.asked.silent;
    if (state_.fds.size() > 3)
      request_.events = &events_.emplace(state_.fds[3].get(), request_.started_microseconds);
    run::Answer answer = run::call(state_.held, request_, ties(), {.silent = silent});
    if (answer.outcome && cancelled_ != nullptr) tell_canceller(*answer.outcome);
    int status = run::exit_status_of(answer);
    std::string said;
    if (events_) {
      events_->ended(answer, status);
      if (const auto& lost = events_->failure()) {  // events are part of the job
        said += record::error_text(*lost, paint());
        status = exit_status_of(*lost);
      }
    }
    if (!silent || !answer.errors.empty()) said += words_of(answer);
    const std::string record = needs_record() ? record::record_text(request_, answer) : "";
    // Who reads the call's output sees its end before the client does.
    for (const int fd : kCallStreams) (void)::dup2(null, fd);
    report(status, record, said);
  }

 private:
  /// A program that ends by itself meanwhile was not killed.
  void tell_canceller(Outcome& outcome) const {
    if (std::holds_alternative<Cancelled>(outcome.verdict))
      outcome.detail = cancelled_;
    else
      outcome.notes.emplace_back(cancelled_);
  }

  [[nodiscard]] bool needs_record() const { return !state_.client.valid() || state_.asked.record; }

  [[nodiscard]] Paint paint() const { return {.on = state_.asked.colors}; }

  /// The client passes signals on from here on.
  void tell_client() {
    if (state_.client.valid() && !std::exchange(is_told_, true))
      (void)protocol::send(state_.client.get(), protocol::CallBegun{.call = state_.name.number});
  }

  [[nodiscard]] std::string words_of(const run::Answer& answer) const {
    if (!answer.errors.empty()) return record::findings_text(answer.errors, paint());
    return record::outcome_words(*answer.plan, *answer.outcome, state_.asked.verbose, paint(),
                                 &state_.held.plan(), answer.policy ? &*answer.policy : nullptr);
  }

  void report(int status, const std::string& record, const std::string& said) {
    // First, so that this process is free when the client's next call comes.
    if (!state_.client.valid()) return session_.note(Note::What::ended, status, {record, said});
    session_.note(Note::What::ended, status);
    tell_client();
    protocol::CallEnded answer{.status = status};
    if (!record.empty()) answer.record.emplace(record);
    if (!said.empty()) answer.said.emplace(said);
    (void)protocol::send(state_.client.get(), answer);  // the client may be gone
  }

  run::CallTies ties() {
    return {
        .session = state_.name.session,
        .group = state_.group.get(),
        .ahead = &state_.ahead,
        .image = state_.image.get(),
        .is_logged = !state_.client.valid(),
        .input_is_sent = state_.asked.open_stdin,
        .began =
            [this](pid_t init) {
              tell_client();
              session_.note(Note::What::began, init);
            },
        .live_in = [this](EventLoop& loop,
                          supervise::Supervisor& supervisor) { return live_in(loop, supervisor); },
        .expect = [this](const auto& address, auto port) { session_.expect(address, port); },
        .keep_mounts = [this](UniqueFd mounts) { state_.mounts = std::move(mounts); },
        .trouble = [this] { return session_.trouble(); },
        .most_processes = [this] { return session_.most_processes(); }};
  }

  Status live_in(EventLoop& loop, supervise::Supervisor& supervisor) {
    SBX_TRY(loop.watch(state_.link.get(), EPOLLIN, [this, &loop, &supervisor](std::uint32_t) {
      handle_order(loop, supervisor);
    }));
    if (!state_.client.valid()) return {};
    return loop.watch(state_.client.get(), EPOLLIN | EPOLLRDHUP,
                      [this, &loop, &supervisor](std::uint32_t) { on_client(loop, supervisor); });
  }

  /// The client passes its signals on, or has ended.
  void on_client(EventLoop& loop, supervise::Supervisor& supervisor) {
    if (auto packet = protocol::receive(state_.client.get())) {
      const int signal = read_fields<protocol::SignalMessage>(std::move(packet->body))
                             .value_or(protocol::SignalMessage{})
                             .signal;
      // To the supervisor's signalfd, as if this process were the client.
      if (std::ranges::find(kForwarded, signal) != std::end(kForwarded)) (void)::raise(signal);
      return;
    }
    loop.forget(state_.client.get());
    // Nobody waits for this call any more: the second cancellation kills at once.
    supervisor.cancel(SIGHUP);
    supervisor.cancel(SIGHUP);
  }

  void handle_order(EventLoop& loop, supervise::Supervisor& supervisor) {
    Note note{};
    const ssize_t got = ::recv(state_.link.get(), &note, sizeof note, MSG_DONTWAIT);
    if (got == 0)
      loop.forget(state_.link.get());  // the session's process is gone, and so is the sandbox
    if (got != sizeof note) return;
    switch (note.what) {
      case Note::What::spend:
        return supervisor.spend(static_cast<Budget>(note.value));
      case Note::What::signal:
        return supervisor.signal_main(note.value);
      case Note::What::cancel:
        cancelled_ = words_of_end(static_cast<EndCause>(note.value));
        return supervisor.cancel(SIGTERM);
      case Note::What::began:
      case Note::What::ended:
      case Note::What::ready:
      case Note::What::answered:
      case Note::What::gone:
      case Note::What::call:
      case Note::What::claim:
      case Note::What::cell:
      case Note::What::interrupt:
      case Note::What::end:
        return;
    }
  }

  WorkerState& state_;
  const char* cancelled_ = nullptr;
  const ToSession session_{state_.link, state_.ask};
  run::Request& request_ = state_.request;
  std::optional<record::EventWriter> events_;
  bool is_told_ = false;
};

}  // namespace

void work(WorkerState state) {
  signals::take_defaults();
  const UniqueFd null(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));  // the session's own input
  while (take_call(state)) {
    CallWorker(state).run(null.get());
    forget_call(state);
  }
  forget_call(state);
  // Without destructors: they would end the session's sandbox, of which this process has a copy.
  ::_exit(0);
}

}  // namespace sbx::session
