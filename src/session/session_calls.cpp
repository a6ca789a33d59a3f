#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "base/message.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "session/self_image.hpp"
#include "session/session.hpp"
#include "session/worker_protocol.hpp"
#include "session/worker_state.hpp"

namespace sbx::session {
namespace {

using namespace std::chrono_literals;

std::string line_of(const plan::RunRequest& program) {
  constexpr std::size_t kLongest = 200;
  std::string text = program.language.empty() ? "" : "--lang " + program.language;
  if (program.code) text += " -c " + shell_word(*program.code);
  if (program.code_from_stdin) text += " -";
  for (const std::string& word : program.operands)
    text += (text.empty() ? "" : " ") + shell_word(word);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + " …";
  return printable(text);
}

Error too_many_calls(std::uint64_t most, const Origin& origin, const std::string& session) {
  return {.kind = ErrorKind::host,
          .code = "too-many-calls",
          .message = std::to_string(most) + (most == 1 ? " call is" : " calls are") +
                     " under way, and session.calls allows no more",
          .origin = origin,
          .hint = "wait for one, or end one: sbx session calls " + session + " lists them"};
}

}  // namespace

Status Session::check_cpu_is_left() const {
  if (!cpu_is_spent_) return {};
  const auto& limit = held_->policy().session.cpu_time;
  return fail(Error{.kind = ErrorKind::policy,
                    .code = "session-cpu-spent",
                    .message = "the session's CPU time of " + describe(limit.value) + " is spent",
                    .origin = limit.origin,
                    .hint = "stop it and start another one"});
}

Result<int> Session::image() {
  if (!image_.valid()) image_ = SBX_TRY(own_image());
  return image_.get();
}

Background Session::background_of(Call& call) {
  return {.loop = loop_,
          .log_bytes = held_->policy().session.log.value.count,
          .used = [this] { clocks_.note_use(); },
          .output = {.drained = [this, &call] { settle(call); },
                     .await =
                         [this](UniqueFd connection) {
                           return connections_.await_follower(std::move(connection));
                         }}};
}

Status Session::start_call(protocol::CallRequest request, const std::string& own_title,
                           Asker& client) {
  const policy::Session& limits = held_->policy().session;
  if (calls_.running() >= limits.calls.value)
    return fail(too_many_calls(limits.calls.value, limits.calls.origin, directory_.name()));
  SBX_TRY(check_cpu_is_left());
  constexpr mode_t kMostUmask = 0777;
  if (request.program.umask.value_or(0) > kMostUmask) return protocol::garbled();
  const int own_program = own_title.empty() ? -1 : SBX_TRY(image());
  Call& call = calls_.add();
  call.is_background = request.background;
  call.since = ::time(nullptr);
  call.began_microseconds = sys::now_microseconds();
  const Assignment assignment{.call = call.number, .request = std::move(request)};
  const auto begin = [&]() -> Status {
    if (call.is_background)
      SBX_TRY(open_streams(call, client.fds, assignment.request, background_of(call)));
    call.worker = SBX_TRY(
        workers_.give(assignment, {.streams = client.fds,
                                   .client = call.is_background ? -1 : client.connection.get(),
                                   .image = own_program}));
    return watch(call);
  };
  if (const Status begun = begin(); !begun) {
    forget_unbegun(call);
    return begun;
  }
  // A foreground call's client hears that from the worker, so that its answers can't overtake each
  // other.
  if (call.is_background)
    (void)protocol::send(client.connection.get(), protocol::CallBegun{.call = call.number});
  client = {};
  // What lists show is made while the worker works.
  call.command = own_title.empty() ? line_of(assignment.request.program) : own_title;
  return {};
}

void Session::forget_unbegun(Call& call) {
  if (call.runs()) workers_.dismiss(leave(call));
  calls_.all().erase(call.number);
}

Status Session::watch(Call& call) {
  const Worker& worker = call.worker;
  call.failed_before = failures();
  SBX_TRY(loop_.watch(worker.process.get(), EPOLLIN,
                      [this, &call](std::uint32_t) { worker_ended(call); }));
  SBX_TRY(loop_.watch(worker.link.get(), EPOLLIN,
                      [this, &call](std::uint32_t) { (void)on_worker_message(call); }));
  return loop_.watch(worker.ask.get(), EPOLLIN,
                     [this, &call](std::uint32_t) { answer_question(call); });
}

/// False at the end of what its worker says.
bool Session::on_worker_message(Call& call) {
  Note note{};
  sys::Message message =
      sys::receive_message(call.worker.link.get(), std::as_writable_bytes(std::span(&note, 1)));
  if (message.length != sizeof note) {
    loop_.forget(call.worker.link.get());
    return false;
  }
  if (note.what == Note::What::began) call.init = note.value;
  if (call.is_context) contexts_.on_note(call.number, note.what);
  if (note.what == Note::What::answered) {
    clocks_.note_use();
    note_use_of(call);
  }
  if (note.what != Note::What::ended) return true;
  call.status = note.value;
  constexpr std::size_t kLargestRecord = std::size_t{1} << 30;
  if (!message.fds.empty() && (call.is_background || call.is_context))
    call.record = sys::read_all(message.fds.front().get(), kLargestRecord).value_or("");
  if (message.fds.size() > 1 && call.output != nullptr)
    call.output->add_last(sys::read_all(message.fds[1].get(), kLargestRecord).value_or(""));
  // A context's process ends with it, once it has answered.
  call.is_context ? workers_.dismiss(leave(call)) : workers_.keep(leave(call));
  ended(call);
  return true;
}

void Session::answer_question(Call& call) {
  Question question{};
  const ssize_t got = ::recv(call.worker.ask.get(), &question, sizeof question, MSG_DONTWAIT);
  if (got != sizeof question) {
    if (got == 0) loop_.forget(call.worker.ask.get());
    return;
  }
  if (question.what == Question::What::trouble) {
    put_aside();  // the call's processes have ended, or the cell has
    (void)protocol::send(call.worker.ask.get(), attribution_.take_trouble(call, failures()));
    return;
  }
  if (question.what == Question::What::most_processes) {
    spares_.end_all();
    (void)protocol::send(call.worker.ask.get(), attribution_.most_processes());
    return;
  }
  held_->expect(question.address, question.port);
  (void)::send(call.worker.ask.get(), &question, sizeof question, MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::vector<NetworkFailure> Session::failures() {
  Outcome network;
  held_->put_network_into(network);
  return std::move(network.network_failures);
}

void Session::put_aside() {
  if (!held_->puts_aside()) return;
  for (const Denial& each : held_->put_aside())
    attribution_.refused(each, 1, [] { return std::string(); });
}

/// Every second, and less often where a look takes long.
void Session::watch_new_names() {
  constexpr std::uint64_t kShare = 4;
  const std::uint64_t began = sys::now_microseconds();
  put_aside();
  const std::uint64_t took = sys::now_microseconds() - began;
  new_names_ =
      loop_.after(std::max<std::chrono::microseconds>(1s, std::chrono::microseconds(kShare * took)),
                  [this] { watch_new_names(); });
}

/// Its worker no longer belongs to the call.
Worker Session::leave(Call& call) {
  for (const UniqueFd* const each : {&call.worker.process, &call.worker.link, &call.worker.ask})
    loop_.forget(each->get());
  return std::exchange(call.worker, {});
}

/// A context's has done what it was for; one of a call was killed, and the call with it, unless
/// that had just ended.
void Session::worker_ended(Call& call) {
  while (call.runs() && on_worker_message(call)) {  // its last words may still be unread
  }
  if (!call.runs()) return;
  workers_.bury(leave(call));
  put_aside();  // the call was killed: nobody has asked
  ended(call);
}

void Session::ended(Call& call) {
  call.ended_microseconds = sys::now_microseconds();
  if (!call.status) call.status = exit_status::kCouldNot;
  call.init = -1;
  if (call.input != nullptr) call.input->close(has_ended(call.number));
  for (const UniqueFd& each : call.waiters) answer_waiter(call, each.get());
  call.waiters.clear();
  clocks_.note_use();
  if (call.is_context) contexts_.on_end(call.number, call.record);
  contexts_.living() == 0 ? spares_.end_all() : spares_.look_soon();
  rest_between_calls();
  settle(call);
  ending_.look();
}

/// Nothing more comes of this call. Forgetting old ones may end `call` itself.
void Session::settle(Call& call) {
  if (call.runs() || !call.is_drained()) return;
  if (call.output != nullptr) call.output->end();
  loop_.after(0us, [this] { calls_.forget_old(); });
}

}  // namespace sbx::session
