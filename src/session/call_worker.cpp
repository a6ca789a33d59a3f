#include "session/call_worker.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <span>
#include <utility>

#include "base/message.hpp"
#include "base/sys.hpp"
#include "record/event_writer.hpp"
#include "record/record.hpp"
#include "record/words.hpp"
#include "run/call.hpp"
#include "session/link.hpp"
#include "session/message.hpp"
#include "session/worker_process.hpp"

namespace sbx::session {
namespace {

bool take_streams(std::vector<UniqueFd>& fds) {
  if (fds.size() < 3) return false;
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    UniqueFd& stream = fds[static_cast<std::size_t>(fd)];
    if (::dup2(stream.get(), fd) < 0) return false;
    stream.reset();
  }
  return true;
}

class CallWorker {
 public:
  explicit CallWorker(Task& task) : task_(task) {}

  int run() {
    request_.call = task_.name;
    request_.started_microseconds = sys::now_microseconds();
    const bool silent = task_.wish.value("silent", false);
    if (task_.fds.size() > 3)
      request_.events = &events_.emplace(task_.fds[3].get(), request_.started_microseconds);
    const run::Answer answer = run::call(task_.held, request_, ties(), {.silent = silent});
    const int status = run::exit_status_of(answer);
    if (events_) events_->ended(answer, status);
    if (!silent || !answer.errors.empty()) tell(answer);
    return report(status, needs_record() ? record::record_text(request_, answer) : "");
  }

 private:
  [[nodiscard]] bool needs_record() const {
    return !task_.client.valid() || task_.wish.value("record", false);
  }

  [[nodiscard]] Paint paint() const {
    const int color = task_.wish.value("color", 0);
    return paint_for(static_cast<Color>(std::min(std::max(color, 0), 2)), STDERR_FILENO);
  }

  void tell(const run::Answer& answer) const {
    if (!answer.errors.empty()) return write_stderr(record::findings_text(answer.errors, paint()));
    write_stderr(record::outcome_words(*answer.plan, *answer.outcome,
                                       task_.wish.value("verbose", false), paint()));
  }

  int report(int status, const std::string& record) const {
    if (task_.client.valid()) {  // first, because somebody waits for it
      Json answer{{"status", status}};
      if (!record.empty()) answer["record"] = record;
      (void)send(task_.client.get(), answer);  // the client may be gone
    }
    const Note ended{Note::What::ended, status};
    std::vector<int> fds;
    const auto file = record.empty() ? Result<UniqueFd>(UniqueFd()) : sys::in_memory(record);
    if (file && file->valid()) fds.push_back(file->get());
    (void)sys::send_message(task_.link.get(), std::as_bytes(std::span(&ended, 1)), fds);
    return status;
  }

  run::CallTies ties() {
    return {
        .session = task_.name.session,
        .group = task_.group,
        .image = task_.image,
        .is_logged = !task_.client.valid(),
        .began = [this](pid_t init) { session_.note(Note::What::began, init); },
        .live_in = [this](EventLoop& loop,
                          supervise::Supervisor& supervisor) { return live_in(loop, supervisor); },
        .expect = [this](const auto& address, auto port) { session_.expect(address, port); },
        .refused = [this] { return session_.refused(); }};
  }

  Status live_in(EventLoop& loop, supervise::Supervisor& supervisor) {
    SBX_TRY(loop.watch(task_.link.get(), EPOLLIN,
                       [this, &loop, &supervisor](std::uint32_t) { obey(loop, supervisor); }));
    if (!task_.client.valid()) return {};
    return loop.watch(task_.client.get(), EPOLLRDHUP, [this, &loop, &supervisor](std::uint32_t) {
      loop.forget(task_.client.get());
      // Nobody waits for this call any more: the second cancellation kills at once.
      supervisor.cancel(SIGHUP);
      supervisor.cancel(SIGHUP);
    });
  }

  void obey(EventLoop& loop, supervise::Supervisor& supervisor) {
    Note note{};
    const ssize_t got = ::recv(task_.link.get(), &note, sizeof note, MSG_DONTWAIT);
    if (got == 0)
      loop.forget(task_.link.get());  // the session's process is gone, and so is the sandbox
    if (got != sizeof note) return;
    switch (note.what) {
      case Note::What::spend:
        return supervisor.spend(static_cast<Budget>(note.value));
      case Note::What::signal:
        return supervisor.signal_main(note.value);
      case Note::What::cancel:
        return supervisor.cancel(SIGTERM);
      case Note::What::began:
      case Note::What::ended:
      case Note::What::ready:
      case Note::What::answered:
      case Note::What::cell:
      case Note::What::interrupt:
      case Note::What::end:
        return;
    }
  }

  Task& task_;
  const ToSession session_{task_.link, task_.ask};
  run::Request& request_ = task_.request;
  std::optional<record::EventWriter> events_;
};

}  // namespace

void work(Task task) {
  take_default_signals();
  if (!take_streams(task.fds)) ::_exit(exit_status::kCouldNot);
  // The client learns whom to send its signals to.
  if (task.client.valid())
    (void)send(task.client.get(), {{"call", task.name.number}, {"pid", ::getpid()}});
  CallWorker worker(task);
  (void)worker.run();
  // Without destructors: they would end the session's sandbox, of which this process has a copy.
  ::_exit(0);
}

}  // namespace sbx::session
