#include "cli/session_command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <utility>

#include "base/signals.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "changes/applying.hpp"
#include "changes/json.hpp"
#include "changes/kept.hpp"
#include "cli/answer.hpp"
#include "cli/complaint.hpp"
#include "cli/repl/command.hpp"
#include "cli/session_eval.hpp"
#include "cli/session_exec.hpp"
#include "cli/session_files.hpp"
#include "cli/session_start.hpp"
#include "cli/usage.hpp"
#include "host/state.hpp"
#include "policy/values.hpp"
#include "protocol/packet.hpp"
#include "protocol/requests.hpp"
#include "record/words.hpp"
#include "run/launch.hpp"
#include "run/terminal_text.hpp"
#include "session/bring_out_worker.hpp"
#include "session/client.hpp"
#include "session/json.hpp"
#include "session/session_directory.hpp"

namespace sbx::cli {
namespace {

using session::member_or;
using session::part;

/// The signal of "TERM", "SIGTERM" or "15".
Result<std::uint8_t> signal_of(std::string_view typed) {
  int number = 0;
  const auto [end, error] = std::from_chars(typed.data(), typed.data() + typed.size(), number);
  if (error == std::errc{} && end == typed.data() + typed.size() && number > 0 && number <= 64)
    return static_cast<std::uint8_t>(number);
  const std::string_view name = typed.starts_with("SIG") ? typed.substr(3) : typed;
  for (std::uint8_t each = 1; each <= 64; ++each) {
    const char* const known = ::sigabbrev_np(each);
    if (known != nullptr && name == known) return each;
  }
  return usage("usage", fmt::format("\"{}\" is not a signal", printable(typed)),
               "for example INT, TERM or 9");
}

/// A connection that asks nothing: it closes when the session ends.
class SessionLife {
 public:
  static Result<SessionLife> watch(const host::Host& host, const std::string& name) {
    return SessionLife(SBX_TRY(session::connect_to(host, name)));
  }
  /// From here on the end of the session is SIGHUP to this process, which is as if the user's
  /// terminal were gone. It is sent by the kernel, so nothing that is typed after the end comes
  /// before it.
  Status hang_up_at_its_end() {
    (void)std::signal(SIGHUP, SIG_DFL);  // nohup is for what asks nobody
    const int flags = ::fcntl(socket_.get(), F_GETFL);
    if (::fcntl(socket_.get(), F_SETOWN, ::getpid()) != 0 ||
        ::fcntl(socket_.get(), F_SETSIG, SIGHUP) != 0 ||
        ::fcntl(socket_.get(), F_SETFL, flags | O_ASYNC) != 0)
      return fail_errno(ErrorKind::internal, "no-signalfd", "cannot hear of the session's end");
    return has_ended() ? fail(gone()) : Status();  // before the signal was ordered
  }
  [[nodiscard]] bool has_ended() const {
    pollfd life{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&life, 1, 0) > 0;
  }
  [[nodiscard]] static Error gone() {
    return {.kind = ErrorKind::host,
            .code = "session-gone",
            .message = "the session has ended before the question was answered"};
  }

 private:
  explicit SessionLife(UniqueFd socket) : socket_(std::move(socket)) {}
  UniqueFd socket_;
};

/// What `apply` shows and applies: a change set that the session made for it.
class Snapshot {
 public:
  static Result<Snapshot> of(const Json& made) {
    return Snapshot(SBX_TRY(changes::Store::open_or_make(session::binary_of(made, "directory"))),
                    member_or(made, "snapshot", ""));
  }
  Snapshot(Snapshot&& other) noexcept
      : store_(std::move(other.store_)), name_(std::exchange(other.name_, {})) {}
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  Snapshot& operator=(Snapshot&&) = delete;
  ~Snapshot() {
    if (!name_.empty()) (void)store_.drop(name_);
  }
  [[nodiscard]] Result<changes::Kept> load() const { return store_.load(name_); }

 private:
  Snapshot(changes::Store store, std::string name)
      : store_(std::move(store)), name_(std::move(name)) {}
  changes::Store store_;
  std::string name_;
};

/// One `sbx session` command.
class SessionCommand {
 public:
  explicit SessionCommand(const Invocation& typed) : typed_(typed), operands_(typed.operands) {}

  int run() {
    auto host = host::probe_caller();
    if (!host) return complain(typed_, host.error());
    host_ = std::move(*host);
    const std::string_view name = std::string_view(typed_.command).substr(8);
    const auto status = dispatch(name);
    if (status) return *status;
    // These exit as a call or a cell did, so 2 would be theirs.
    if (name == "wait" || name == "exec" || name == "eval")
      return complain(typed_, status.error(), exit_status::kCouldNot);
    return complain(typed_, status.error());
  }

 private:
  /// Tells that a part failed; the command goes on.
  int tell(const Error& error) const {
    write_stderr(record::error_text(error, paint_for(typed_.output.color, STDERR_FILENO)));
    return exit_status::kCouldNot;
  }

  Result<int> dispatch(std::string_view name) {
    // What a killed session has left is swept, but not by the commands that must be fast.
    if (name != "exec" && name != "eval") (void)session::live_sessions(host_);
    if (name == "list") return list();
    if (name == "stop") return stop();
    if (operands_.empty())
      return usage("usage", fmt::format("\"sbx {}\" needs the name of a session", typed_.command),
                   "sbx session list names them");
    if (name == "exec") return session_exec(typed_, host_, operands_.front());
    if (name == "eval")
      return typed_.request.interactive ? session_repl(typed_, host_)
                                        : run_cell(typed_, host_).status;
    if (name == "contexts") return contexts();
    if (name == "interrupt") return interrupt();
    if (name == "restart") return restart();
    if (name == "calls") return calls();
    if (name == "logs") return logs();
    if (name == "wait") return wait();
    if (name == "kill") return kill();
    if (name == "put") return put_files(typed_, host_);
    if (name == "get") return get_files(typed_, host_);
    if (name == "ls") return list_files(typed_, host_);
    if (name == "changes" || name == "diff") return changes(name == "diff");
    if (name == "apply") return apply();
    if (name == "keep") return keep();
    if (name == "show" || name == "stats") return show(name == "stats");
    return extend();
  }

  Status most(std::size_t count) const {
    if (operands_.size() <= count) return {};
    return usage("usage",
                 fmt::format("\"sbx {}\" takes no operand \"{}\"", typed_.command,
                             printable(operands_[count])),
                 fmt::format("sbx {} --help", typed_.command));
  }

  [[nodiscard]] Result<Json> ask(const protocol::IsRequest auto& request) const {
    session::Client client = SBX_TRY(session::Client::connect(host_, operands_.front()));
    return client.ask(body_of(request));
  }

  [[nodiscard]] static int print(const std::string& text) {
    return record::print_answer(text) ? kDone : exit_status::kCouldNot;
  }

  /// The answer of a command that prints nothing else.
  [[nodiscard]] int answered(const Json& body, int status = kDone) const {
    if (!typed_.output.json) return status;
    return print(dump(session::headed(body))) == kDone ? status : exit_status::kCouldNot;
  }

  Result<std::uint64_t> call_number() const {
    if (operands_.size() < 2)
      return usage("usage", fmt::format("\"sbx {}\" needs the number of a call", typed_.command),
                   fmt::format("sbx session calls {} lists them", printable(operands_.front())));
    const std::string& text = operands_[1];
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size())
      return usage("usage", fmt::format("\"{}\" is not a number of a call", printable(text)),
                   fmt::format("sbx session calls {} lists them", printable(operands_.front())));
    return number;
  }

  // --- sessions

  Result<int> list() const {
    SBX_TRY(most(0));
    Json sessions = Json::array();
    std::size_t widest = 4;
    for (const session::LiveSession& each : session::live_sessions(host_)) {
      auto client = session::Client::connect(each);
      if (!client) continue;  // it has just ended
      auto facts = client->ask_soon(body_of(protocol::InfoRequest{}));
      if (!facts && facts.error().code != "session-gone") {
        facts.error().message = "\"" + each.name + "\": " + facts.error().message;
        (void)tell(facts.error());
      }
      if (!facts) continue;
      widest = std::max(widest, each.name.size());
      sessions.push_back(std::move(*facts));
    }
    if (typed_.output.json)
      return print(dump(session::headed({{"sessions", std::move(sessions)}})));
    if (sessions.empty()) {
      write_stderr(session::no_sessions(host_));
      return kDone;
    }
    std::string text =
        fmt::format("{:<{}}  {:>7}  {:>5}  {:>8}  {:<19}  {:<14}  {}\n", "NAME", widest, "PID",
                    "CALLS", "CONTEXTS", "EXPIRES", "POLICY", "DIRECTORY");
    for (const Json& each : sessions)
      text += fmt::format("{:<{}}  {:>7}  {:>5}  {:>8}  {:<19}  {:<14}  {}\n",
                          member_or(each, "name", ""), widest, member_or(each, "pid", 0),
                          member_or(each, "calls_running", 0), member_or(each, "contexts", 0),
                          time_text(member_or(each, "expires", std::int64_t{0})),
                          printable(member_or(part(each, "policy"), "name", "")),
                          printable(member_or(each, "directory", "")));
    return print_fitted(text);
  }

  /// A typing error must stop nothing.
  [[nodiscard]] Result<std::vector<session::Client>> clients_of_all() const {
    std::vector<session::Client> clients;
    for (const std::string& name : operands_) {
      auto client = session::Client::connect(host_, name);
      if (!client) {
        if (operands_.size() > 1) client.error().message += "; nothing was stopped";
        return fail(std::move(client).error());
      }
      clients.push_back(std::move(*client));
    }
    return clients;
  }

  [[nodiscard]] std::vector<session::Client> clients_of_living() {
    std::vector<session::Client> clients;
    for (const session::LiveSession& each : session::live_sessions(host_)) {
      auto client = session::Client::connect(each);
      if (!client && client.error().code != "session-gone") (void)tell(client.error());
      if (!client) continue;
      clients.push_back(std::move(*client));
      operands_.push_back(each.name);
    }
    return clients;
  }

  Result<int> stop() {
    if (operands_.empty() != typed_.all)
      return usage("usage",
                   typed_.all ? "--all and a name exclude each other"
                              : "\"sbx session stop\" needs the name of a session",
                   "sbx session list names them; --all stops all of them");
    std::vector<session::Client> clients;
    if (typed_.all) clients = clients_of_living();
    const std::string& set = typed_.bring_out.keep;
    if (!set.empty() && operands_.size() != 1)
      return usage("usage", "--keep names the changes of one session",
                   "stop the sessions one by one");
    if (!typed_.all) clients = SBX_TRY(clients_of_all());
    Json done{{"stopped", Json::array()}};
    if (!set.empty()) {
      auto kept = keep_as(set);
      if (!kept) {
        kept.error().message += "; the session lives on";
        return fail(std::move(kept).error());
      }
      done.update(*kept);
    }
    int status = kDone;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      const Status stopped = clients[i].stop_and_wait(body_of(protocol::StopRequest{}));
      if (stopped)
        done["stopped"].push_back(operands_[i]);
      else
        status = tell(stopped.error());
    }
    session::sweep_snapshots(host::state_directory(host_));
    return answered(done, status);
  }

  Result<int> show(bool stats) const {
    SBX_TRY(most(1));
    const Json facts =
        SBX_TRY(stats ? ask(protocol::StatsRequest{}) : ask(protocol::InfoRequest{}));
    if (typed_.output.json) return print(dump(session::headed(facts)));
    std::string text = fmt::format("{}  policy {} ({}), process {}\n", member_or(facts, "name", ""),
                                   printable(member_or(part(facts, "policy"), "name", "")),
                                   printable(member_or(part(facts, "policy"), "source", "")),
                                   member_or(facts, "pid", 0));
    text +=
        fmt::format("  directory  {}\n  started    {}\n  expires    {}, or after {} without use\n",
                    printable(member_or(facts, "directory", "")),
                    time_text(member_or(facts, "started", std::int64_t{0})),
                    time_text(member_or(facts, "expires", std::int64_t{0})),
                    describe(Milliseconds{member_or(facts, "idle_ms", std::int64_t{0})}));
    const auto contexts = member_or(facts, "contexts", 0);
    text += fmt::format("  calls      {} running, {} context{}\n",
                        member_or(facts, "calls_running", 0), contexts, contexts == 1 ? "" : "s");
    text += stats ? stats_lines(facts) : budget_lines(facts);
    for (const Json& each : part(facts, "degraded"))
      text += fmt::format("  weaker     {}: {}\n", printable(member_or(each, "what", "")),
                          printable(member_or(each, "why", "")));
    return print_fitted(text);
  }

  static std::string budget_lines(const Json& facts) {
    const Json& limits = part(facts, "limits");
    const auto bytes = [&](const char* key) {
      return describe(Bytes{member_or(limits, key, std::uint64_t{0})});
    };
    const auto time = [&](const char* key) {
      return part(limits, key).is_number_integer()
                 ? describe(Milliseconds{part(limits, key).get<std::int64_t>()})
                 : "any";
    };
    return fmt::format(
        "  workspace  {}\n  budgets    memory {}, disk {}, {} processes, {} CPUs\n"
        "             of each call: wall time {}, CPU time {}\n",
        member_or(facts, "workspace", ""), bytes("memory_bytes"), bytes("disk_bytes"),
        member_or(limits, "processes", std::uint64_t{0}), member_or(limits, "cpus", 0.0),
        time("wall_time_ms"), time("cpu_time_ms"));
  }

  static std::string stats_lines(const Json& facts) {
    const auto bytes = [&](const char* key) {
      return describe(Bytes{member_or(facts, key, std::uint64_t{0})});
    };
    return fmt::format(
        "  memory     {} of {}\n  disk       {} of {}\n  processes  {} of {}\n  CPU time   {}\n",
        bytes("memory_bytes"), bytes("memory_limit_bytes"), bytes("disk_bytes"),
        bytes("disk_limit_bytes"), member_or(facts, "processes", 0),
        member_or(facts, "processes_limit", 0),
        describe(Milliseconds{member_or(facts, "cpu_ms", std::int64_t{0})}));
  }

  Result<int> extend() const {
    SBX_TRY(most(2));
    if (operands_.size() < 2)
      return usage("usage", "\"sbx session extend\" needs a session and a time",
                   "for example 30m or 2h");
    const auto time = parse_duration(operands_[1]);
    if (!time || time->count() < 1000)
      return usage("bad-value",
                   fmt::format("\"{}\" is not a time of 1s or more", printable(operands_[1])),
                   "a number and a unit: 30s, 30m or 2h");
    const Json facts = SBX_TRY(
        ask(protocol::ExtendRequest{.milliseconds = static_cast<std::uint64_t>(time->count())}));
    if (typed_.output.json) return print(dump(session::headed(facts)));
    return print("expires " + time_text(member_or(facts, "expires", std::int64_t{0})) + "\n");
  }

  // --- calls

  Result<int> calls() const {
    SBX_TRY(most(1));
    const Json facts = SBX_TRY(ask(protocol::CallsRequest{}));
    if (typed_.output.json) return print(dump(session::headed(facts)));
    std::string text = fmt::format("{:>5}  {:<10}  {:>6}  {:<19}  {}\n", "CALL", "STATE", "STATUS",
                                   "SINCE", "COMMAND");
    for (const Json& each : part(facts, "calls")) {
      const auto status = each.find("exit_status");
      text += fmt::format(
          "{:>5}  {:<10}  {:>6}  {:<19}  {}\n", member_or(each, "call", 0),
          member_or(each, "state", "") +
              (member_or(each, "background", false) && member_or(each, "state", "") == "running"
                   ? " &"
                   : ""),
          status == each.end() || status->is_null()
              ? ""
              : std::to_string(member_or(each, "exit_status", 0)),
          time_text(member_or(each, "since", std::int64_t{0})), member_or(each, "command", ""));
    }
    return print_fitted(text);
  }

  // --- contexts

  Result<int> contexts() const {
    SBX_TRY(most(1));
    const Json facts = SBX_TRY(ask(protocol::ContextsRequest{}));
    if (typed_.output.json) return print(dump(session::headed(facts)));
    std::string text = fmt::format("{:<20}  {:<10}  {:<8}  {:>5}  {:>7}  {}\n", "CONTEXT",
                                   "LANGUAGE", "STATE", "CELLS", "WAITING", "SINCE");
    for (const Json& each : part(facts, "contexts"))
      text +=
          fmt::format("{:<20}  {:<10}  {:<8}  {:>5}  {:>7}  {}\n", member_or(each, "context", ""),
                      member_or(each, "language", ""), member_or(each, "state", ""),
                      member_or(each, "cells", 0), member_or(each, "waiting", 0),
                      time_text(member_or(each, "since", std::int64_t{0})));
    return print_fitted(text);
  }

  /// The one that is named, or all.
  Result<std::vector<std::string>> named_contexts() const {
    SBX_TRY(most(2));
    if (operands_.size() > 1) return std::vector{operands_[1]};
    std::vector<std::string> names;
    const Json facts = SBX_TRY(ask(protocol::ContextsRequest{}));
    for (const Json& each : part(facts, "contexts"))
      names.push_back(member_or(each, "context", ""));
    return names;
  }

  Result<int> interrupt() const {
    Json names = Json::array();
    for (const std::string& name : SBX_TRY(named_contexts())) {
      const Json done = SBX_TRY(ask(protocol::InterruptRequest{.context = name}));
      if (member_or(done, "interrupted", false)) names.push_back(name);
    }
    if (names.empty() && !typed_.output.json) write_stderr("sbx: no cell runs there\n");
    return answered({{"interrupted", std::move(names)}});
  }

  Result<int> restart() const {
    Json names = Json::array();
    for (const std::string& name : SBX_TRY(named_contexts())) {
      (void)SBX_TRY(ask(protocol::RestartRequest{.context = name}));
      names.push_back(name);
    }
    return answered({{"restarted", std::move(names)}});
  }

  Result<int> logs() const {
    SBX_TRY(most(2));
    if (typed_.output.json && typed_.follow)
      return usage("usage", "--json and --follow exclude each other",
                   "sbx session wait first; --json prints what is there by now");
    protocol::LogsRequest request{.call = SBX_TRY(call_number()), .follow = typed_.follow};
    if (typed_.output.json) return log_as_json(request);
    session::Client client = SBX_TRY(session::Client::connect(host_, operands_.front()));
    for (bool has_begun = false;; has_begun = true) {
      const auto answer = client.ask(body_of(request));
      if (!answer && has_begun && is_gone(answer.error())) return kDone;  // and the call with it
      if (!answer) return fail(answer.error());
      const Json& log = *answer;
      if (!log.contains("ended")) return protocol::garbled();
      for (const auto& [key, fd] :
           {std::pair("stdout", STDOUT_FILENO), std::pair("stderr", STDERR_FILENO)})
        SBX_TRY(write_to(fd, key, made_safe(session::binary_of(log, key), fd)));
      if (!typed_.follow || member_or(log, "ended", false)) return kDone;
      request.out = member_or(log, "out", std::uint64_t{0});
      request.err = member_or(log, "err", std::uint64_t{0});
    }
  }

  static Status write_to(int fd, const char* name, const std::string& text) {
    Status written = sys::write_all(fd, text);
    if (!written) written.error().message = std::string("cannot write to ") + name;
    return written;
  }

  static bool is_gone(const Error& error) {
    return error.code == "no-such-session" || error.code == "session-gone";
  }

  Result<int> log_as_json(const protocol::LogsRequest& request) const {
    const Json log = SBX_TRY(ask(request));
    Json json{{"call", request.call}, {"ended", member_or(log, "ended", false)}};
    for (const auto& [key, count] : {std::pair("stdout", "out"), std::pair("stderr", "err")}) {
      put_name(json, key, session::binary_of(log, key));
      json[fmt::format("{}_bytes", key)] = member_or(log, count, std::uint64_t{0});
    }
    return answered(json);
  }

  /// What a program wrote never reaches a terminal raw.
  static std::string made_safe(const std::string& text, int fd) {
    return ::isatty(fd) == 1 ? run::for_terminal(text) : text;
  }

  Result<int> wait() const {
    SBX_TRY(most(2));
    const std::uint64_t call = SBX_TRY(call_number());
    const Json ended =
        SBX_TRY(ask(protocol::WaitRequest{.call = call, .record = typed_.output.json}));
    if (!part(ended, "status").is_number_integer()) return protocol::garbled();
    const int status = member_or(ended, "status", exit_status::kCouldNot);
    if (!typed_.output.json) return status;
    return print(member_or(ended, "record", "")) == kDone ? status : exit_status::kCouldNot;
  }

  Result<int> kill() const {
    SBX_TRY(most(3));
    protocol::KillRequest request{.call = SBX_TRY(call_number())};
    if (operands_.size() > 2) request.signal = SBX_TRY(signal_of(operands_[2]));
    (void)SBX_TRY(ask(request));
    return answered({{"call", request.call}, {"signal", request.signal.value_or(SIGTERM)}});
  }

  // --- the workspace

  [[nodiscard]] Result<Json> ask_reader(Json request) const {
    session::Client client = SBX_TRY(session::Client::connect(host_, operands_.front()));
    request["op"] = "changes";
    request["color"] = static_cast<int>(typed_.output.color);
    const int fds[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    return client.ask_worker(request, fds);
  }

  Result<int> changes(bool texts) const {
    SBX_TRY(most(1));
    const char* const view = typed_.patch         ? "patch"
                             : texts              ? "diff"
                             : typed_.output.json ? "json"
                                                  : "list";
    Json seen = SBX_TRY(ask_reader({{"view", view}}));
    const std::string text = session::binary_of(seen, "text");
    if (typed_.output.json && texts) put_name(seen, "text", text);
    const int printed = typed_.output.json ? print(dump(session::headed(seen))) : print(text);
    if (!typed_.patch) return printed;
    for (const Json& each : typed_.output.json ? Json::array() : part(seen, "left"))
      write_stderr("sbx: not in the patch: " + printable(member_or(each, "path", "")) + ": " +
                   printable(member_or(each, "why", "")) + "\n");
    return printed != kDone || part(seen, "left").empty() ? printed : kFindings;
  }

  /// The session only makes a snapshot, and its calls go on. This process asks and applies: nothing
  /// is left to answer once it has ended.
  Result<int> apply() const {
    const bool asks = !typed_.bring_out.yes;
    auto life = SBX_TRY(SessionLife::watch(host_, operands_.front()));
    SBX_TRY(changes::check_asking(asks));
    const Json made = SBX_TRY(ask_reader({{"snapshot", true}}));
    const std::vector<std::string> patterns(operands_.begin() + 1, operands_.end());
    if (!part(made, "snapshot").is_string()) {
      if (!typed_.output.json) write_stderr("sbx: nothing was changed, so nothing is applied\n");
      return applied({{"applied", nullptr}, {"incomplete", !patterns.empty()}});
    }
    // Signals wait: apply_changes() takes them; one that comes before or after keeps no snapshot
    // from being dropped.
    const signals::Held held(signals::kEnding, signals::Ignored::is_taken_too);
    const Snapshot snapshot = SBX_TRY(Snapshot::of(made));
    changes::Kept kept = SBX_TRY(snapshot.load());
    SBX_TRY(changes::open_directories(kept));
    if (asks) SBX_TRY(life.hang_up_at_its_end());
    const changes::ApplyEnd end =
        SBX_TRY(changes::apply_changes(kept.copy, kept.changes,
                                       {.patterns = patterns,
                                        .policy_files = kept.facts.policy_files,
                                        .asks = asks,
                                        .state_directory = host::state_directory(host_),
                                        .silent = typed_.output.json,
                                        .rest = "sbx session changes --json " + operands_.front()},
                                       paint_for(typed_.output.color, STDERR_FILENO)));
    if (asks && end.signal == SIGHUP && life.has_ended()) return fail(SessionLife::gone());
    if (end.leaves_something() && !typed_.output.json)
      write_stderr("sbx: the session keeps what was not applied\n");
    return applied({{"applied", changes::applied_json(end.applied)},
                    {"incomplete", end.applied.is_incomplete() || !end.wanted || !end.all_met},
                    {"failures", end.applied.has_failures()},
                    {"signal", end.signal}});
  }

  [[nodiscard]] int applied(const Json& done) const {
    if (typed_.output.json && print(dump(session::headed(done))) != kDone)
      return exit_status::kCouldNot;
    if (const int signal = member_or(done, "signal", 0); signal != 0)
      return exit_status_of(Cancelled{signal});
    if (member_or(done, "failures", false)) return exit_status::kCouldNot;
    return member_or(done, "incomplete", false) ? kFindings : kDone;
  }

  [[nodiscard]] Result<Json> keep_as(const std::string& set) const {
    return ask_reader({{"keep", set}, {"silent", typed_.output.json}});
  }

  Result<int> keep() const {
    SBX_TRY(most(2));
    if (operands_.size() < 2)
      return usage("usage", "\"sbx session keep\" needs a session and the name of a set",
                   "sbx session keep work before-lunch");
    SBX_TRY(changes::check_set_name(operands_[1]));
    const Json done = SBX_TRY(keep_as(operands_[1]));
    return answered(done);
  }

  const Invocation& typed_;
  std::vector<std::string> operands_;
  host::Host host_;
};

}  // namespace

int session_command(const Invocation& typed, const OwnProcess& process) {
  return typed.command == "session start" ? start_command(typed, process)
                                          : SessionCommand(typed).run();
}

}  // namespace sbx::cli
