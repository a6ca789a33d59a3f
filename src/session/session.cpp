#include "session/session.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <span>
#include <utility>

#include "base/message.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "host/host.hpp"
#include "policy/write.hpp"
#include "run/held_sandbox.hpp"
#include "session/bring_out_worker.hpp"
#include "session/call_worker.hpp"
#include "session/calls.hpp"
#include "session/image.hpp"
#include "session/json.hpp"
#include "session/link.hpp"
#include "session/message.hpp"
#include "session/place.hpp"
#include "worker/message.hpp"

namespace sbx::session {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

/// After a stop the calls have 2 s to end, as a cancelled run has, and a moment to be killed.
constexpr auto kStopsWithin = 4s;
/// A call that was told to end has this long before another one is chosen.
constexpr std::uint64_t kDiesWithin = 1'000'000;
constexpr std::size_t kMostRefused = 100;
constexpr std::size_t kReadAtOnce = std::size_t{64} << 10;

std::uint64_t in_microseconds(Milliseconds time) {
  return static_cast<std::uint64_t>(microseconds(time).count());
}

std::string make_id() {
  std::uint64_t number = 0;
  (void)!::getrandom(&number, sizeof number, 0);  // blocks only before the kernel's pool is ready
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string id = "s_";
  for (int shift = 60; shift >= 0; shift -= 4) id += kDigits[(number >> shift) & 15U];
  return id;
}

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

/// The session's process.
class Session : public Events {
 public:
  Session(Place place, std::unique_ptr<run::HeldSandbox> held, EventLoop loop)
      : loop_(std::move(loop)),
        place_(std::move(place)),
        id_(make_id()),
        started_(::time(nullptr)),
        held_(std::move(held)) {}

  Status begin();
  void run();
  [[nodiscard]] Json info() const;

  // Of the network; a call's own denials are in its worker.
  void started(const sbx::Started&) override {}
  void limit_met(const LimitMet&) override {}
  void output_cut(const std::string&, Bytes) override {}
  void denied(const Denial& denial) override;

 private:
  using Handler = void (Session::*)(Json& wish, Packet& packet, UniqueFd connection);

  // Requests
  void accept_all();
  void serve(int connection);
  void handle(Packet packet, UniqueFd connection);
  void refuse(int connection, const Error& error) const {
    (void)send(connection, {{"error", error_json(error)}});
  }
  void call(Packet packet, UniqueFd connection);
  void list_calls(const UniqueFd& connection);
  void logs(const Json& wish, UniqueFd connection);
  void wait(const Json& wish, UniqueFd connection);
  void signal(const Json& wish, const UniqueFd& connection);
  void extend(const Json& wish, const UniqueFd& connection);
  void stats(const UniqueFd& connection);
  void bring_out(Packet packet, UniqueFd connection);
  [[nodiscard]] Call* named_call(const Json& wish, int connection);

  // Calls
  Status start_call(const Json& wish, std::vector<UniqueFd>& fds, UniqueFd connection);
  [[nodiscard]] Result<int> image();
  Status log_output(Call& call, std::vector<UniqueFd>& fds);
  Status watch(Call& call);
  void hear(Call& call);
  void answer_question(Call& call);
  void read_log(Call& call, UniqueFd& pipe, Log& log);
  void worker_ended(Call& call);
  void settle(Call& call);
  void answer_followers(Call& call);
  [[nodiscard]] static Json log_of(const Call& call, std::uint64_t out, std::uint64_t err);
  static void answer_waiter(const Call& call, int connection);

  // Budgets and the end
  void spent(Budget budget);
  void spend_memory();
  static void tell_spent(Call& call, Budget budget);
  void rest_between_calls();
  void note_use();
  void watch_idle();
  void watch_lifetime();
  void stop(UniqueFd connection);
  void end_when_calls_have();
  void handle_signals();

  EventLoop loop_;
  Place place_;
  std::string id_;
  std::int64_t started_;
  std::unique_ptr<run::HeldSandbox> held_;
  UniqueFd socket_;
  UniqueFd signals_;
  UniqueFd image_;
  std::vector<UniqueFd> clients_;  ///< connected, before their request
  Calls calls_;
  std::vector<std::pair<Packet, UniqueFd>> deferred_;  ///< what came while changes are read
  UniqueFd reader_;  ///< pidfd of the process that reads changes while the calls are stopped
  std::vector<UniqueFd> stoppers_;  ///< hear of the end
  std::uint64_t last_use_ = 0;
  std::uint64_t ends_at_ = 0;
  bool cpu_is_spent_ = false;
  bool stops_ = false;
  bool over_ = false;
};

Status Session::begin() {
  socket_ = SBX_TRY(place_.listen());
  SBX_TRY(held_->attach(loop_, {.events = this,
                                .spent = [this](Budget budget) { spent(budget); },
                                .ended =
                                    [this] {
                                      stops_ = true;
                                      end_when_calls_have();
                                    }}));
  sigset_t taken;
  ::sigemptyset(&taken);
  for (const int number : {SIGTERM, SIGINT, SIGQUIT}) ::sigaddset(&taken, number);
  signals_ = UniqueFd(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid())
    return fail_errno(ErrorKind::internal, "no-signalfd", "cannot receive signals");
  ::sigprocmask(SIG_BLOCK, &taken, nullptr);
  (void)std::signal(SIGHUP, SIG_IGN);  // of the terminal that it was started at
  SBX_TRY(loop_.watch(signals_.get(), EPOLLIN, [this](std::uint32_t) { handle_signals(); }));
  SBX_TRY(loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t) { accept_all(); }));
  ends_at_ = sys::now_microseconds() + in_microseconds(held_->policy().session.lifetime.value);
  note_use();
  rest_between_calls();
  watch_idle();
  watch_lifetime();
  return {};
}

void Session::run() {
  while (!over_)
    if (!loop_.run_once()) break;
  // Everything is gone before whoever waits for the end hears of it.
  for (const auto& [number, call] : calls_.all()) call->group.reset();
  held_.reset();
  socket_.reset();
  {
    const Place removed = std::move(place_);
  }
  for (const UniqueFd& each : stoppers_) (void)send(each.get(), {{"stopped", true}});
}

Json Session::info() const {
  const policy::Policy& policy = held_->policy();
  Json json{{"name", place_.name()},
            {"id", id_},
            {"pid", ::getpid()},
            {"sbx", SBX_VERSION},
            {"policy",
             {{"name", lossy_utf8(policy.name.value)},
              {"source", lossy_utf8(policy.source)},
              {"sha256", sha256_hex(policy::write(policy))}}},
            {"started", started_},
            {"calls_running", const_cast<Session*>(this)->calls_.running()}};
  put_name(json, "directory", held_->plan().working_directory);
  const std::uint64_t now = sys::now_microseconds();
  json["expires"] =
      ::time(nullptr) + static_cast<std::int64_t>((std::max(ends_at_, now) - now) / 1'000'000);
  json["idle_ms"] = policy.session.idle.value.count();
  const policy::Outputs& outputs = policy.filesystem.outputs;
  json["outputs"] = {{"max_bytes", outputs.max_bytes.value.count},
                     {"max_files", outputs.max_files.value},
                     {"max_depth", outputs.max_depth.value}};
  json["policy_files"] = Json::array();
  for (const std::string& file : policy.files) json["policy_files"].push_back(lossy_utf8(file));
  Json degraded = Json::array();
  for (const Degraded& each : held_->plan().degraded)
    degraded.push_back(
        {{"what", each.what()},
         {"why", lossy_utf8(each.why)},
         {"instead", each.instead.empty() ? Json(nullptr) : Json(lossy_utf8(each.instead))}});
  json["degraded"] = std::move(degraded);
  return json;
}

// ---- requests ----

void Session::accept_all() {
  constexpr int kAtOnce = 64;  // a flood of connections leaves time for the rest of the loop
  for (int i = 0; i < kAtOnce; ++i) {
    UniqueFd client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.valid()) return;
    if (!may_use(client.get())) continue;
    const int fd = client.get();
    if (loop_.watch(fd, EPOLLIN, [this, fd](std::uint32_t) { serve(fd); }))
      clients_.push_back(std::move(client));
  }
}

void Session::serve(int fd) {
  loop_.forget(fd);
  const auto found = std::ranges::find(clients_, fd, &UniqueFd::get);
  if (found == clients_.end()) return;
  UniqueFd connection = std::move(*found);
  clients_.erase(found);
  auto packet = receive(connection.get());
  if (!packet) return;
  note_use();
  handle(std::move(*packet), std::move(connection));
}

void Session::handle(Packet packet, UniqueFd connection) {
  const std::string op = packet.body.value("op", "");
  if (stops_ && op != "stop")
    return refuse(
        connection.get(),
        {.kind = ErrorKind::usage, .code = "session-gone", .message = "the session is ending"});
  if (op == "call") return call(std::move(packet), std::move(connection));
  if (op == "info") return (void)send(connection.get(), info());
  if (op == "calls") return list_calls(connection);
  if (op == "logs") return logs(packet.body, std::move(connection));
  if (op == "wait") return wait(packet.body, std::move(connection));
  if (op == "kill") return signal(packet.body, connection);
  if (op == "extend") return extend(packet.body, connection);
  if (op == "stats") return stats(connection);
  if (op == "changes") return bring_out(std::move(packet), std::move(connection));
  if (op == "stop") return stop(std::move(connection));
  refuse(connection.get(), {.kind = ErrorKind::usage,
                            .code = "bad-message",
                            .message = "the session does not know \"" + printable(op) + "\"",
                            .hint = "it was started by another version of sbx"});
}

void Session::call(Packet packet, UniqueFd connection) {
  if (reader_.valid()) {
    deferred_.emplace_back(std::move(packet), std::move(connection));
    return;
  }
  const int client = connection.get();
  const int copy = ::fcntl(client, F_DUPFD_CLOEXEC, 3);
  const UniqueFd kept(copy);  // to tell of an error once the connection belongs to the call
  held_->resume();
  if (const Status begun = start_call(packet.body, packet.fds, std::move(connection)); !begun)
    refuse(kept.get(), begun.error());
  rest_between_calls();
}

Call* Session::named_call(const Json& wish, int connection) {
  Call* const found = calls_.find(wish.value("call", std::uint64_t{0}));
  if (found == nullptr)
    refuse(connection, {.kind = ErrorKind::usage,
                        .code = "no-such-call",
                        .message = "the session has no call " +
                                   std::to_string(wish.value("call", std::uint64_t{0})),
                        .hint = "sbx session calls " + place_.name() + " lists them"});
  return found;
}

void Session::list_calls(const UniqueFd& connection) {
  Json list = Json::array();
  for (const auto& [number, each] : calls_.all()) list.push_back(facts_of(*each));
  (void)send(connection.get(), {{"calls", std::move(list)}});
}

Json Session::log_of(const Call& call, std::uint64_t out, std::uint64_t err) {
  Json json{{"out", call.out.written()},
            {"err", call.err.written()},
            {"ended", !call.runs() && call.is_drained()}};
  put_binary(json, "stdout", call.out.since(out));
  put_binary(json, "stderr", call.err.since(err));
  return json;
}

void Session::logs(const Json& wish, UniqueFd connection) {
  Call* const call = named_call(wish, connection.get());
  if (call == nullptr) return;
  if (!call->is_background)
    return refuse(connection.get(), {.kind = ErrorKind::usage,
                                     .code = "not-in-background",
                                     .message = "call " + std::to_string(call->number) +
                                                " had a client, which got its output",
                                     .hint = "exec -d keeps a call's output"});
  const std::uint64_t out = wish.value("out", std::uint64_t{0});
  const std::uint64_t err = wish.value("err", std::uint64_t{0});
  const bool has_more = call->out.written() > out || call->err.written() > err;
  const bool ended = !call->runs() && call->is_drained();
  if (!wish.value("follow", false) || has_more || ended)
    return (void)send(connection.get(), log_of(*call, out, err));
  call->followers.push_back({.connection = std::move(connection), .out = out, .err = err});
}

void Session::answer_followers(Call& call) {
  for (const Follower& each : call.followers)
    (void)send(each.connection.get(), log_of(call, each.out, each.err));
  call.followers.clear();
}

void Session::answer_waiter(const Call& call, int connection) {
  Json answer{{"status", call.status.value_or(exit_status::kCouldNot)}, {"call", facts_of(call)}};
  if (!call.record.empty()) answer["record"] = call.record;
  (void)send(connection, answer);
}

void Session::wait(const Json& wish, UniqueFd connection) {
  Call* const call = named_call(wish, connection.get());
  if (call == nullptr) return;
  if (!call->runs()) return answer_waiter(*call, connection.get());
  call->waiters.push_back(std::move(connection));
}

void Session::signal(const Json& wish, const UniqueFd& connection) {
  Call* const call = named_call(wish, connection.get());
  if (call == nullptr) return;
  if (!call->runs())
    return refuse(connection.get(),
                  {.kind = ErrorKind::usage,
                   .code = "call-ended",
                   .message = "call " + std::to_string(call->number) + " has ended"});
  const int number = wish.value("signal", 0);
  const Note note = number == 0 ? Note{Note::What::cancel, 0} : Note{Note::What::signal, number};
  (void)::send(call->link.get(), &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)send(connection.get(), Json::object());
}

void Session::extend(const Json& wish, const UniqueFd& connection) {
  const auto by = Milliseconds{wish.value("milliseconds", std::int64_t{0})};
  const policy::Session& limits = held_->policy().session;
  // The policy's lifetime bounds each extension: a session can be prolonged again and again, but not by more at a time.
  if (by > limits.lifetime.value)
    return refuse(connection.get(), {.kind = ErrorKind::policy,
                                     .code = "widens-session",
                                     .message = "a session lives on for session.lifetime = \"" +
                                                to_text(limits.lifetime.value) + "\" at most",
                                     .origin = limits.lifetime.origin,
                                     .hint = "extend it by less"});
  ends_at_ = sys::now_microseconds() + in_microseconds(by);
  watch_lifetime();
  (void)send(connection.get(), info());
}

void Session::stats(const UniqueFd& connection) {
  const run::HeldSandbox::Use use = held_->use();
  const plan::Plan& plan = held_->plan();
  Json json = info();
  json["memory_bytes"] = use.memory_bytes;
  json["memory_limit_bytes"] = plan.budgets.memory.count;
  json["disk_bytes"] = use.disk_bytes;
  json["disk_limit_bytes"] = plan.budgets.disk.count;
  json["processes"] = use.processes;
  json["processes_limit"] = plan.budgets.processes;
  json["cpu_ms"] = use.cpu_microseconds / 1000;
  Outcome network;
  held_->put_network_into(network);
  Json used = Json::array();
  for (const NetworkUse& each : network.network_used)
    used.push_back({{"rule", each.rule},
                    {"connections", each.connections},
                    {"bytes_in", each.bytes_in},
                    {"bytes_out", each.bytes_out}});
  json["network"] = std::move(used);
  (void)send(connection.get(), json);
}

// ---- calls ----

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
  if (cpu_is_spent_)
    return fail(Error{
        .kind = ErrorKind::policy,
        .code = "session-cpu-spent",
        .message = "the session's CPU time of " + describe(limits.cpu_time.value) + " is spent",
        .origin = limits.cpu_time.origin,
        .hint = "stop it and start another one"});
  const auto request = worker::unpack(binary_of(wish, "request"));
  if (!request) return fail(request.error());
  const bool own = wish.value("own", false);
  const int own_program = own ? SBX_TRY(image()) : -1;
  const bool background = wish.value("background", false);
  auto link = SBX_TRY(sys::make_packet_pair());
  auto ask = SBX_TRY(sys::make_packet_pair());
  Call& call = calls_.add(limits.log.value.count);
  call.is_background = background;
  call.command = own ? wish.value("title", "files") : line_of(request->program);
  call.since = ::time(nullptr);
  call.began_microseconds = sys::now_microseconds();
  call.group = held_->make_call_group();
  if (background)
    if (const Status piped = log_output(call, fds); !piped) {
      calls_.all().erase(call.number);
      return piped;
    }
  const pid_t pid = ::fork();
  if (pid == 0) {
    // What of the session's must not outlive it here.
    socket_.reset();
    link.first.reset();
    ask.first.reset();
    place_.forget_lock();
    work({.held = *held_,
          .name = {place_.name(), id_, call.number},
          .wish = wish,
          .fds = std::move(fds),
          .client = background ? UniqueFd() : std::move(connection),
          .link = std::move(link.second),
          .ask = std::move(ask.second),
          .group = call.group.get(),
          .image = own_program});
  }
  const int error = errno;
  if (pid > 0) call.process = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!call.process.valid()) {
    calls_.all().erase(call.number);
    return fail_errno(ErrorKind::host, "cannot-clone", "no process can be started for the call",
                      error);
  }
  call.worker = pid;
  call.link = std::move(link.first);
  call.ask = std::move(ask.first);
  // A foreground call's client hears that from the worker, so that its answers can't overtake each other.
  if (background) (void)send(connection.get(), {{"call", call.number}, {"pid", pid}});
  fds.clear();
  return watch(call);
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

// ---- the workspace ----

void Session::bring_out(Packet packet, UniqueFd connection) {
  if (reader_.valid()) {
    deferred_.emplace_back(std::move(packet), std::move(connection));
    return;
  }
  const pid_t pid = ::fork();
  if (pid == 0) {
    socket_.reset();
    place_.forget_lock();
    bring_out_and_answer({.held = *held_,
                          .name = place_.name(),
                          .id = id_,
                          .wish = std::move(packet.body),
                          .fds = std::move(packet.fds),
                          .client = std::move(connection)});
  }
  if (pid > 0) reader_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!reader_.valid())
    return refuse(
        connection.get(),
        {.kind = ErrorKind::host, .code = "cannot-clone", .message = "cannot start a process"});
  (void)send(connection.get(), {{"pid", pid}});
  (void)loop_.watch(reader_.get(), EPOLLIN, [this](std::uint32_t) {
    loop_.forget(reader_.get());
    siginfo_t end{};
    while (::waitid(P_PIDFD, static_cast<id_t>(reader_.get()), &end, WEXITED) < 0 &&
           errno == EINTR) {
    }
    reader_.reset();
    if (end.si_code != CLD_EXITED) held_->continue_calls();  // killed, it woke nobody
    note_use();
    auto waiting = std::exchange(deferred_, {});
    for (auto& [packet, client] : waiting) handle(std::move(packet), std::move(client));
    if (stops_) end_when_calls_have();
  });
}

// ---- budgets ----

void Session::tell_spent(Call& call, Budget budget) {
  const Note note{Note::What::spend, static_cast<std::int32_t>(budget)};
  call.told_spent = sys::now_microseconds();
  (void)::send(call.link.get(), &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Session::spent(Budget budget) {
  if (budget == Budget::memory) return spend_memory();
  if (budget == Budget::cpu_time) cpu_is_spent_ = true;
  for (const auto& [number, call] : calls_.all())
    if (call->runs() && call->told_spent == 0) tell_spent(*call, budget);
}

/// The call that holds the most ends; while one is dying no other is chosen.
void Session::spend_memory() {
  const std::uint64_t now = sys::now_microseconds();
  Call* largest = nullptr;
  std::uint64_t most = 0;
  for (const auto& [number, call] : calls_.all()) {
    if (!call->runs() || call->init < 0) continue;
    if (call->told_spent != 0 && now - call->told_spent < kDiesWithin) return;
    const std::uint64_t held = held_->memory_below(call->init);
    if (held < most) continue;
    most = held;
    largest = call.get();
  }
  if (largest != nullptr) tell_spent(*largest, Budget::memory);
}

// ---- the end ----

void Session::rest_between_calls() {
  if (calls_.running() == 0) held_->rest();
}

void Session::note_use() {
  last_use_ = sys::now_microseconds();
}

void Session::watch_idle() {
  const std::uint64_t now = sys::now_microseconds();
  const std::uint64_t idle = in_microseconds(held_->policy().session.idle.value);
  if (calls_.running() > 0 || reader_.valid()) note_use();
  if (now - last_use_ >= idle) return stop(UniqueFd());
  loop_.after(microseconds(std::min(last_use_ + idle - now + 1000, idle)),
              [this] { watch_idle(); });
}

void Session::watch_lifetime() {
  const std::uint64_t now = sys::now_microseconds();
  if (now >= ends_at_) return stop(UniqueFd());
  loop_.after(microseconds(ends_at_ - now), [this] { watch_lifetime(); });
}

void Session::handle_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) stop(UniqueFd());
}

void Session::stop(UniqueFd connection) {
  if (connection.valid()) stoppers_.push_back(std::move(connection));
  if (stops_) return end_when_calls_have();
  stops_ = true;
  const Note note{Note::What::cancel, 0};
  for (const auto& [number, call] : calls_.all())
    if (call->runs())
      (void)::send(call->link.get(), &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT);
  loop_.after(kStopsWithin, [this] { over_ = true; });
  end_when_calls_have();
}

void Session::end_when_calls_have() {
  if (calls_.running() > 0 || reader_.valid()) return;
  // The output of ended calls may still be on its way to those who follow it.
  for (const auto& [number, call] : calls_.all())
    if (!call->is_drained()) return (void)loop_.after(1ms, [this] { end_when_calls_have(); });
  over_ = true;
}

// ---- the start ----

/// Only the standard streams and `keep` stay: the session holds nothing of its starter's.
void close_others(int keep) {
  const auto own = static_cast<unsigned>(keep);
  if (own > STDERR_FILENO + 1U) (void)::close_range(STDERR_FILENO + 1U, own - 1, 0);
  (void)::close_range(own + 1, ~0U, 0);
}

void leave_terminal() {
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (null.valid()) (void)::dup2(null.get(), fd);
  (void)!::chdir("/");  // the starter's directory can be unmounted
}

using Tell = std::function<void(const policy::Findings&)>;

int serve(const std::string& name, const run::Request& request, const run::Sinks& sinks,
          const Tell& tell, const UniqueFd& ready) {
  const auto refuse = [&](const policy::Findings& findings) {
    tell(findings);
    return exit_status_of(findings.front());
  };
  const auto host = host::probe();
  if (!host) return refuse({host.error()});
  auto place = Place::make(*host, name);
  if (!place) return refuse({place.error()});
  auto held = run::HeldSandbox::start(request, sinks);
  if (!held) return refuse(held.error());
  auto loop = EventLoop::make();
  if (!loop) return refuse({loop.error()});
  auto session = std::make_unique<Session>(std::move(*place), std::move(*held), std::move(*loop));
  if (const Status begun = session->begin(); !begun) return refuse({begun.error()});
  leave_terminal();
  (void)send(ready.get(), session->info());
  const_cast<UniqueFd&>(ready).reset();
  session->run();
  return 0;
}

}  // namespace

StartAnswer start(std::string name, run::Request request, const run::Sinks& sinks,
                  const Tell& tell) {
  if (name.empty()) name = make_name();
  if (const Status right = check_name(name); !right) {
    tell({right.error()});
    return {.status = exit_status_of(right.error())};
  }
  auto pair = sys::make_packet_pair();
  const pid_t pid = pair ? ::fork() : -1;
  if (pid < 0) {
    tell({pair ? Error{.kind = ErrorKind::host,
                       .code = "cannot-clone",
                       .message = "cannot start a process",
                       .errno_value = errno}
               : pair.error()});
    return {.status = exit_status::kCouldNot};
  }
  if (pid == 0) {
    pair->first.reset();
    (void)::setsid();
    close_others(pair->second.get());
    const int status = serve(name, request, sinks, tell, pair->second);
    ::_exit(status);
  }
  pair->second.reset();
  auto answer = receive(pair->first.get());
  if (answer) return {.status = 0, .facts = std::move(answer->body)};
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) return {.status = WEXITSTATUS(status)};
  tell({Error{.kind = ErrorKind::internal,
              .code = "session-gone",
              .message = "the session's process was killed"}});
  return {.status = exit_status::kCouldNot};
}

}  // namespace sbx::session
