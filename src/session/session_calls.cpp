#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "base/message.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "session/call_worker.hpp"
#include "session/image.hpp"
#include "session/json.hpp"
#include "session/link.hpp"
#include "session/session.hpp"
#include "worker/message.hpp"

namespace sbx::session {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostRefused = 100;
constexpr std::size_t kReadAtOnce = std::size_t{64} << 10;

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

Error too_many(std::uint64_t most, const Origin& origin) {
  return {
      .kind = ErrorKind::usage,
      .code = "too-many-calls",
      .message = std::to_string(most) + " calls are under way, and session.calls allows no more",
      .origin = origin,
      .hint = "wait for one, or end one: sbx session calls NAME lists them"};
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

/// The session reads what a background call writes.
Status Session::log_output(Call& call, std::vector<UniqueFd>& fds) {
  sys::Pipe out = SBX_TRY(sys::make_pipe());
  sys::Pipe err = SBX_TRY(sys::make_pipe());
  UniqueFd null = SBX_TRY(sys::open_at(AT_FDCWD, "/dev/null", O_RDONLY));
  for (const int fd : {out.read.get(), err.read.get()}) (void)::fcntl(fd, F_SETFL, O_NONBLOCK);
  call.out_pipe = std::move(out.read);
  call.err_pipe = std::move(err.read);
  std::vector<UniqueFd> streams;
  streams.push_back(std::move(null));
  streams.push_back(std::move(out.write));
  streams.push_back(std::move(err.write));
  for (std::size_t i = 3; i < fds.size(); ++i) streams.push_back(std::move(fds[i]));
  fds = std::move(streams);
  return {};
}

Status Session::start_call(const Json& wish, std::vector<UniqueFd>& fds, UniqueFd connection) {
  const policy::Session& limits = held_->policy().session;
  if (calls_.running() >= limits.calls.value)
    return fail(too_many(limits.calls.value, limits.calls.origin));
  SBX_TRY(check_cpu_is_left());
  auto request = worker::unpack(binary_of(wish, "request"));
  if (!request) return fail(request.error());
  const bool own = wish.value("own", false);
  const int own_program = own ? SBX_TRY(image()) : -1;
  const bool background = wish.value("background", false);
  Call& call = calls_.add(limits.log.value.count);
  call.is_background = background;
  call.command = own ? wish.value("title", "files") : line_of(request->program);
  if (background)
    if (const Status piped = log_output(call, fds); !piped) {
      calls_.all().erase(call.number);
      return piped;
    }
  Task task{.held = *held_,
            .name = {place_.name(), id_, call.number},
            .wish = wish,
            .request = std::move(*request),
            .fds = std::move(fds),
            .image = own_program};
  if (!background) task.client = std::move(connection);
  SBX_TRY(fork_worker(call, std::move(task), work));
  // A foreground call's client hears that from the worker, so that its answers can't overtake each other.
  if (background) (void)send(connection.get(), {{"call", call.number}, {"pid", call.worker}});
  fds.clear();
  return watch(call);
}

Status Session::fork_worker(Call& call, Task task, void (*work)(Task)) {
  auto link = sys::make_packet_pair();
  auto ask = sys::make_packet_pair();
  const std::uint64_t number = call.number;
  pid_t pid = -1;
  if (link && ask) {
    call.since = ::time(nullptr);
    call.began_microseconds = sys::now_microseconds();
    call.group = held_->make_call_group();
    task.link = std::move(link->second);
    task.ask = std::move(ask->second);
    task.group = call.group.get();
    pid = ::fork();
  }
  if (pid == 0) {
    // What of the session's must not outlive it here.
    socket_.reset();
    link->first.reset();
    ask->first.reset();
    place_.forget_lock();
    // A copy of a client's output would keep its reader waiting for the end.
    clients_.clear();
    deferred_.clear();
    stoppers_.clear();
    contexts_.all().clear();
    work(std::move(task));
  }
  const int error = errno;
  if (pid > 0) call.process = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!call.process.valid()) {
    calls_.all().erase(number);
    return fail_errno(ErrorKind::host, "cannot-clone", "no process can be started for the call",
                      error);
  }
  call.worker = pid;
  call.link = std::move(link->first);
  call.ask = std::move(ask->first);
  return {};
}

Status Session::watch(Call& call) {
  SBX_TRY(loop_.watch(call.process.get(), EPOLLIN,
                      [this, &call](std::uint32_t) { worker_ended(call); }));
  SBX_TRY(loop_.watch(call.link.get(), EPOLLIN, [this, &call](std::uint32_t) { hear(call); }));
  SBX_TRY(loop_.watch(call.ask.get(), EPOLLIN,
                      [this, &call](std::uint32_t) { answer_question(call); }));
  if (!call.is_background) return {};
  SBX_TRY(loop_.watch(call.out_pipe.get(), EPOLLIN,
                      [this, &call](std::uint32_t) { read_log(call, call.out_pipe, call.out); }));
  return loop_.watch(call.err_pipe.get(), EPOLLIN,
                     [this, &call](std::uint32_t) { read_log(call, call.err_pipe, call.err); });
}

void Session::hear(Call& call) {
  Note note{};
  sys::Message message =
      sys::receive_message(call.link.get(), std::as_writable_bytes(std::span(&note, 1)));
  if (message.length != sizeof note) return loop_.forget(call.link.get());
  if (note.what == Note::What::began) call.init = note.value;
  if (call.is_context) hear_of_context(call, note.what);
  if (note.what != Note::What::ended) return;
  call.status = note.value;
  if (message.fds.empty() || !call.is_background) return;
  constexpr std::size_t kLargest = std::size_t{1} << 30;
  call.record = sys::read_all(message.fds.front().get(), kLargest).value_or("");
}

void Session::answer_question(Call& call) {
  Question question{};
  const ssize_t got = ::recv(call.ask.get(), &question, sizeof question, MSG_DONTWAIT);
  if (got != sizeof question) {
    if (got == 0) loop_.forget(call.ask.get());
    return;
  }
  if (question.what == Question::What::refused) {
    (void)send(call.ask.get(), {{"refused", denials_to_json(call.refused)}});
    call.refused.clear();  // a context asks after each cell
    return;
  }
  held_->expect(question.address, question.port);
  (void)::send(call.ask.get(), &question, sizeof question, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Session::denied(const Denial& denial) {
  for (const auto& [number, call] : calls_.all()) {
    if (!call->runs()) continue;
    const auto same = std::ranges::find_if(call->refused, [&](const Denial& each) {
      return each.what == denial.what && each.rule == denial.rule;
    });
    if (same != call->refused.end())
      ++same->count;
    else if (call->refused.size() < kMostRefused) {
      call->refused.push_back(denial);
      call->refused.back().count = 1;
    }
  }
}

void Session::read_log(Call& call, UniqueFd& pipe, Log& log) {
  std::string bytes(kReadAtOnce, '\0');
  const ssize_t got = ::read(pipe.get(), bytes.data(), bytes.size());
  if (got < 0) return;  // EAGAIN
  if (got > 0) {
    log.add(std::string_view(bytes).substr(0, static_cast<std::size_t>(got)));
    return answer_followers(call);
  }
  loop_.forget(pipe.get());
  pipe.reset();
  settle(call);
}

void Session::worker_ended(Call& call) {
  loop_.forget(call.process.get());
  hear(call);  // its last word may still be unread
  siginfo_t ignored{};
  while (::waitid(P_PIDFD, static_cast<id_t>(call.process.get()), &ignored, WEXITED) < 0 &&
         errno == EINTR) {
  }
  for (UniqueFd* const each : {&call.link, &call.ask}) {
    loop_.forget(each->get());
    each->reset();
  }
  call.process.reset();
  call.ended_microseconds = sys::now_microseconds();
  if (!call.status)
    call.status = exit_status::kCouldNot;  // the worker was killed, and the call with it
  call.group.reset();
  call.init = -1;
  for (const UniqueFd& each : call.waiters) answer_waiter(call, each.get());
  call.waiters.clear();
  note_use();
  if (call.is_context) context_ended(call);
  rest_between_calls();
  settle(call);
  if (stops_) end_when_calls_have();
}

/// Nothing more comes of this call. Forgetting old ones may end `call` itself.
void Session::settle(Call& call) {
  if (call.runs() || !call.is_drained()) return;
  call.out.close();
  call.err.close();
  answer_followers(call);
  loop_.after(0us, [this] { calls_.forget_old(); });
}

}  // namespace sbx::session
