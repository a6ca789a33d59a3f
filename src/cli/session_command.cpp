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
#include <span>
#include <utility>

#include "base/signals.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "changes/applying.hpp"
#include "changes/json.hpp"
#include "changes/kept.hpp"
#include "cli/answer.hpp"
#include "cli/complaint.hpp"
#include "cli/forwarding.hpp"
#include "cli/repl/command.hpp"
#include "cli/session_eval.hpp"
#include "cli/session_exec.hpp"
#include "cli/session_files.hpp"
#include "cli/session_start.hpp"
#include "cli/usage.hpp"
#include "client/sending.hpp"
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
#include "session/snapshot.hpp"

namespace sbx::cli {
namespace {

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
    if (name == "context") return open_context();
    if (name == "close") return close_context();
    if (name == "contexts") return contexts();
    if (name == "interrupt") return interrupt();
    if (name == "restart") return restart();
    if (name == "calls") return calls();
    if (name == "logs") return logs();
    if (name == "wait") return wait();
    if (name == "kill") return kill();
    if (name == "send") return send();
    if (name == "put") return put_files(typed_, host_);
    if (name == "get") return get_files(typed_, host_);
    if (name == "ls") return list_files(typed_, host_);
    if (name == "stat" || name == "mkdir" || name == "mv" || name == "rm")
      return change_files(typed_, host_);
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

  template <protocol::IsRequest Asked>
  [[nodiscard]] Result<typename Asked::Answer> ask(const Asked& request) const {
    session::Client client = SBX_TRY(session::Client::connect(host_, operands_.front()));
    return client.ask(request);
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
    std::vector<protocol::SessionFacts> sessions;
    std::size_t widest = 4;
    for (const session::LiveSession& each : session::live_sessions(host_)) {
      auto client = session::Client::connect(each);
      if (!client) continue;  // it has just ended
      auto facts = client->ask_soon(protocol::InfoRequest{});
      if (!facts && facts.error().code != "session-gone") {
        facts.error().message = "\"" + each.name + "\": " + facts.error().message;
        (void)tell(facts.error());
      }
      if (!facts) continue;
      widest = std::max(widest, each.name.size());
      sessions.push_back(std::move(*facts));
    }
    if (typed_.output.json)
      return print(dump(session::headed(protocol::SessionList{std::move(sessions)})));
    if (sessions.empty()) {
      write_stderr(session::no_sessions(host_));
      return kDone;
    }
    std::string text =
        fmt::format("{:<{}}  {:>7}  {:>5}  {:>8}  {:<19}  {:<14}  {}\n", "NAME", widest, "PID",
                    "CALLS", "CONTEXTS", "EXPIRES", "POLICY", "DIRECTORY");
    for (const protocol::SessionFacts& each : sessions)
      text +=
          fmt::format("{:<{}}  {:>7}  {:>5}  {:>8}  {:<19}  {:<14}  {}\n", printable(each.name),
                      widest, each.pid, each.calls_running, each.contexts, time_text(each.expires),
                      printable(each.policy.name), printable(each.directory));
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

  /// What ends with a session. Nothing here keeps it from ending.
  [[nodiscard]] Json changes_of(const std::string& session) const {
    auto seen = ask_reader(
        protocol::ChangesRequest{.view = protocol::View::json, .color = typed_.output.color},
        session);
    if (!seen && seen.error().code != "no-changes-kept" && !is_gone(seen.error()))
      write_stderr(fmt::format("sbx: {}: the changes that end with it can't be listed: {}\n",
                               printable(session), printable(seen.error().message)));
    return seen ? seen->changes : Json::array();
  }

  void note_stopped(const std::string& session, const Json& changes, Json& done) const {
    done["stopped"].push_back(session);
    if (changes.empty()) return;
    done["lost"].push_back({{"session", session}, {"changes", changes}});
    const std::string names = first_names(changes);
    if (typed_.output.json || names.empty()) return;
    write_stderr(
        fmt::format("sbx: changes that were not applied ended with {}: {}\n"
                    "  help: before the end, sbx session apply {} applies them; sbx "
                    "session stop --keep SET {} keeps them for sbx changes\n",
                    printable(session), names, printable(session), printable(session)));
  }

  /// Of paths that a person may miss; those that begin with a dot come last.
  static std::string first_names(const Json& changes) {
    constexpr std::size_t kShown = 3;
    std::vector<std::string> paths;
    for (const Json& each : changes) {
      std::string path = session::member_or(each, "path", "");
      if (!path.contains("__pycache__")) paths.push_back(std::move(path));
    }
    std::ranges::stable_partition(paths,
                                  [](const std::string& path) { return !path.starts_with('.'); });
    const std::size_t shown = std::min(paths.size(), kShown);
    std::string names;
    for (const std::string& path : std::span(paths).first(shown))
      names += (names.empty() ? "" : ", ") + printable(path);
    if (paths.size() > shown) names += fmt::format(" and {} more", paths.size() - shown);
    return names;
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
    Json done{{"stopped", Json::array()}, {"lost", Json::array()}};
    if (!set.empty()) {
      auto kept = keep_as(set);
      if (!kept) {
        kept.error().message += "; the session lives on";
        return fail(std::move(kept).error());
      }
      done.update(write_fields(*kept, Form::document));
      if (kept->failures) {
        if (!typed_.output.json)
          write_stderr("sbx: the session lives on, because not everything is kept\n");
        return answered(done, exit_status::kCouldNot);
      }
    }
    int status = kDone;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      const Json lost = set.empty() ? changes_of(operands_[i]) : Json::array();
      const Status stopped = clients[i].stop_and_wait();
      if (stopped)
        note_stopped(operands_[i], lost, done);
      else
        status = tell(stopped.error());
    }
    session::sweep_snapshots(host::state_directory(host_));
    return answered(done, status);
  }

  Result<int> show(bool stats) const {
    SBX_TRY(most(1));
    protocol::StatsAnswer shown;
    if (stats)
      shown = SBX_TRY(ask(protocol::StatsRequest{}));
    else
      shown.session = SBX_TRY(ask(protocol::InfoRequest{}));
    const protocol::SessionFacts& facts = shown.session;
    if (typed_.output.json) {
      Json json = session::headed(facts);
      if (stats) json.update(write_fields(shown.use, Form::document));
      return print(dump(json));
    }
    std::string text =
        fmt::format("{}  policy {} ({}), process {}\n", printable(facts.name),
                    printable(facts.policy.name), printable(facts.policy.source), facts.pid);
    text +=
        fmt::format("  directory  {}\n  started    {}\n  expires    {}, or after {} without use\n",
                    printable(facts.directory), time_text(facts.started), time_text(facts.expires),
                    describe(Milliseconds{facts.idle_ms}));
    text += fmt::format("  calls      {} running, {} context{}\n", facts.calls_running,
                        facts.contexts, facts.contexts == 1 ? "" : "s");
    text += stats ? stats_lines(shown.use) : budget_lines(facts);
    for (const protocol::WeakerFacts& each : facts.degraded)
      text += fmt::format("  weaker     {}: {}\n", printable(each.what), printable(each.why));
    return print_fitted(text);
  }

  static std::string budget_lines(const protocol::SessionFacts& facts) {
    const auto time = [](std::uint64_t count) {
      return describe(Milliseconds{static_cast<std::int64_t>(count)});
    };
    const protocol::LimitFacts& limits = facts.limits;
    return fmt::format(
        "  workspace  {}\n  budgets    memory {}, disk {}, {} processes, {} CPUs\n"
        "             of each call: wall time {}, CPU time {}\n",
        printable(facts.workspace), describe(Bytes{limits.memory_bytes}),
        describe(Bytes{limits.disk_bytes}), limits.processes, limits.cpus,
        limits.wall_time_ms ? time(*limits.wall_time_ms) : "any", time(limits.cpu_time_ms));
  }

  static std::string stats_lines(const protocol::UseFacts& use) {
    return fmt::format(
        "  memory     {} of {}\n  disk       {} of {}\n  processes  {} of {}\n  CPU time   {}\n",
        describe(Bytes{use.memory_bytes}), describe(Bytes{use.memory_limit_bytes}),
        describe(Bytes{use.disk_bytes}), describe(Bytes{use.disk_limit_bytes}), use.processes,
        use.processes_limit, describe(Milliseconds{static_cast<std::int64_t>(use.cpu_ms)}));
  }

  Result<int> extend() const {
    SBX_TRY(most(2));
    if (operands_.size() < 2)
      return usage("usage", "\"sbx session extend\" needs a session and a time",
                   "for example 30m or 2h");
    const auto time = parse_duration(operands_[1]);
    if (!time || time->count() < 1000)
      return usage(
          "bad-value", fmt::format("\"{}\" is not a time of 1s or more", printable(operands_[1])),
          operands_[1].starts_with('-') ? "the time from now, as 5m; sbx session stop NAME ends it"
                                        : "a number and a unit: 30s, 30m or 2h");
    const protocol::SessionFacts facts = SBX_TRY(
        ask(protocol::ExtendRequest{.milliseconds = static_cast<std::uint64_t>(time->count())}));
    if (typed_.output.json) return print(dump(session::headed(facts)));
    return print("expires " + time_text(facts.expires) + "\n");
  }

  // --- calls

  Result<int> calls() const {
    SBX_TRY(most(1));
    const protocol::CallsAnswer facts = SBX_TRY(ask(protocol::CallsRequest{}));
    if (typed_.output.json) return print(dump(session::headed(facts)));
    std::string text = fmt::format("{:>5}  {:<10}  {:>6}  {:<19}  {}\n", "CALL", "STATE", "STATUS",
                                   "SINCE", "COMMAND");
    for (const protocol::CallFacts& each : facts.calls) {
      const bool is_beside = each.background && each.state == protocol::CallState::running;
      text += fmt::format("{:>5}  {:<10}  {:>6}  {:<19}  {}\n", each.call,
                          std::string(name_of(each.state)) + (is_beside ? " &" : ""),
                          each.exit_status ? std::to_string(*each.exit_status) : "",
                          time_text(each.since), printable(each.command));
    }
    return print_fitted(text);
  }

  // --- contexts

  Result<int> contexts() const {
    SBX_TRY(most(1));
    const protocol::ContextsAnswer facts = SBX_TRY(ask(protocol::ContextsRequest{}));
    if (typed_.output.json) return print(dump(session::headed(facts)));
    std::string text = fmt::format("{:<20}  {:<10}  {:<8}  {:>5}  {:>7}  {}\n", "CONTEXT",
                                   "LANGUAGE", "STATE", "CELLS", "WAITING", "SINCE");
    for (const protocol::ContextFacts& each : facts.contexts)
      text += fmt::format("{:<20}  {:<10}  {:<8}  {:>5}  {:>7}  {}\n", printable(each.context),
                          printable(each.language), name_of(each.state), each.cells, each.waiting,
                          time_text(each.since));
    return print_fitted(text);
  }

  Result<int> open_context() const {
    SBX_TRY(most(1));
    const protocol::InspectAnswer opened = SBX_TRY(ask(protocol::OpenContextRequest{
        .language = typed_.request.language, .directory = typed_.request.directory}));
    const Json json = session::headed(
        {{"context", lossy_utf8(opened.context)}, {"language", lossy_utf8(opened.language)}});
    const int status = print(typed_.output.json ? dump(json) : printable(opened.context) + "\n");
    // Nobody knows its name.
    if (status != kDone) (void)ask(protocol::CloseContextRequest{.context = opened.context});
    return status;
  }

  Result<int> close_context() const {
    SBX_TRY(most(2));
    if (operands_.size() < 2)
      return usage("usage", "\"sbx session close\" needs a session and a context",
                   fmt::format("sbx session contexts {} lists them", printable(operands_.front())));
    (void)SBX_TRY(ask(protocol::CloseContextRequest{.context = operands_[1]}));
    return answered({{"closed", operands_[1]}});
  }

  /// The one that is named, or all.
  Result<std::vector<std::string>> named_contexts() const {
    SBX_TRY(most(2));
    if (operands_.size() > 1) return std::vector{operands_[1]};
    std::vector<std::string> names;
    const protocol::ContextsAnswer facts = SBX_TRY(ask(protocol::ContextsRequest{}));
    for (const protocol::ContextFacts& each : facts.contexts) names.push_back(each.context);
    return names;
  }

  Result<int> interrupt() const {
    Json names = Json::array();
    for (const std::string& name : SBX_TRY(named_contexts())) {
      if (SBX_TRY(ask(protocol::InterruptRequest{.context = name})).interrupted)
        names.push_back(name);
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
      const auto answer = client.ask(request);
      if (!answer && has_begun && is_gone(answer.error())) return kDone;  // and the call with it
      if (!answer) return fail(answer.error());
      SBX_TRY(write_to(STDOUT_FILENO, "stdout", made_safe(answer->out_text, STDOUT_FILENO)));
      SBX_TRY(write_to(STDERR_FILENO, "stderr", made_safe(answer->err_text, STDERR_FILENO)));
      if (!typed_.follow || answer->ended) return kDone;
      request.out = answer->out;
      request.err = answer->err;
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
    const protocol::LogAnswer log = SBX_TRY(ask(request));
    Json json{{"call", request.call}, {"ended", log.ended}};
    put_name(json, "stdout", log.out_text);
    json["stdout_bytes"] = log.out;
    put_name(json, "stderr", log.err_text);
    json["stderr_bytes"] = log.err;
    return answered(json);
  }

  /// What a program wrote never reaches a terminal raw.
  static std::string made_safe(const std::string& text, int fd) {
    return ::isatty(fd) == 1 ? run::for_terminal(text) : text;
  }

  Result<int> wait() const {
    SBX_TRY(most(2));
    const std::uint64_t call = SBX_TRY(call_number());
    const protocol::CallEnded ended =
        SBX_TRY(ask(protocol::WaitRequest{.call = call, .record = typed_.output.json}));
    if (!typed_.output.json) return ended.status;
    return print(ended.record.value_or("")) == kDone ? ended.status : exit_status::kCouldNot;
  }

  Result<int> kill() const {
    SBX_TRY(most(3));
    protocol::KillRequest request{.call = SBX_TRY(call_number())};
    if (operands_.size() > 2) request.signal = SBX_TRY(signal_of(operands_[2]));
    (void)SBX_TRY(ask(request));
    return answered({{"call", request.call}, {"signal", request.signal.value_or(SIGTERM)}});
  }

  /// TEXT is a line, as a person types one.
  Result<int> send() const {
    SBX_TRY(most(3));
    const std::uint64_t call = SBX_TRY(call_number());
    client::Input input{.end = typed_.end};
    if (operands_.size() > 2 && operands_[2] == "-")
      input.source = STDIN_FILENO;
    else if (operands_.size() > 2)
      input.text = operands_[2] + (operands_[2].ends_with('\n') ? "" : "\n");
    else if (!typed_.end)
      return usage("usage", "\"sbx session send\" needs what is to be sent",
                   "a line, - for standard input, or --end alone");
    client::Sending sending(SBX_TRY(session::Client::connect(host_, operands_.front())), call,
                            std::move(input));
    const std::uint64_t bytes = SBX_TRY(sending.run());
    return answered({{"call", call}, {"bytes", bytes}, {"ended", typed_.end}});
  }

  // --- the workspace

  template <protocol::IsRequest Asked>
  [[nodiscard]] Result<typename Asked::Answer> ask_reader(const Asked& request) const {
    return ask_reader(request, operands_.front());
  }
  template <protocol::IsRequest Asked>
  [[nodiscard]] Result<typename Asked::Answer> ask_reader(const Asked& request,
                                                          const std::string& session) const {
    session::Client client = SBX_TRY(session::Client::connect(host_, session));
    const int fds[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    return run_forwarding(std::move(client), request, fds);
  }

  Result<int> changes(bool texts) const {
    SBX_TRY(most(1));
    using protocol::View;
    const View view = typed_.patch         ? View::patch
                      : texts              ? View::diff
                      : typed_.output.json ? View::json
                                           : View::list;
    protocol::ChangesAnswer seen =
        SBX_TRY(ask_reader(protocol::ChangesRequest{.view = view, .color = typed_.output.color}));
    const std::string text = seen.text.value_or("");
    Json json = session::headed(seen);
    if (seen.text) put_name(json, "text", text);
    const int printed = typed_.output.json      ? print(dump(json))
                        : typed_.patch || texts ? print(text)
                                                : print_fitted(text);
    if (!typed_.patch) return printed;
    const std::vector<protocol::LeftFacts> left =
        seen.left.value_or(std::vector<protocol::LeftFacts>{});
    if (!typed_.output.json)
      for (const protocol::LeftFacts& each : left)
        write_stderr("sbx: not in the patch: " + printable(each.path) + ": " + printable(each.why) +
                     "\n");
    return printed != kDone || left.empty() ? printed : kFindings;
  }

  /// The session only makes a snapshot, and its calls go on. This process asks and applies: nothing
  /// is left to answer once it has ended.
  Result<int> apply() const {
    const bool asks = !typed_.bring_out.yes;
    auto life = SBX_TRY(SessionLife::watch(host_, operands_.front()));
    SBX_TRY(changes::check_asking(asks));
    const protocol::SnapshotAnswer made = SBX_TRY(ask_reader(protocol::SnapshotRequest{}));
    const std::vector<std::string> patterns(operands_.begin() + 1, operands_.end());
    if (!made.snapshot) {
      if (!typed_.output.json) write_stderr("sbx: nothing was changed, so nothing is applied\n");
      return applied({{"applied", nullptr}, {"incomplete", !patterns.empty()}});
    }
    // Signals wait: apply_changes() takes them; one that comes before or after keeps no snapshot
    // from being dropped.
    const signals::Held held(signals::kEnding, signals::Ignored::is_taken_too);
    const session::Snapshot snapshot = SBX_TRY(session::Snapshot::of(made));
    const changes::Kept kept = SBX_TRY(snapshot.load());
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
    snapshot.note_as_applied(kept, end.applied);
    if (asks && end.signal == SIGHUP && life.has_ended()) return fail(SessionLife::gone());
    if (end.leaves_something() && !typed_.output.json)
      write_stderr("sbx: the session keeps what was not applied\n");
    return applied({{"applied", changes::applied_json(end.applied)},
                    {"incomplete", end.applied.is_incomplete() || !end.wanted || !end.all_met},
                    {"failures", end.applied.has_failures()},
                    {"signal", end.signal}},
                   end.signal);
  }

  [[nodiscard]] int applied(const Json& done, int signal = 0) const {
    if (typed_.output.json && print(dump(session::headed(done))) != kDone)
      return exit_status::kCouldNot;
    if (signal != 0) return exit_status_of(Cancelled{signal});
    if (done.value("failures", false)) return exit_status::kCouldNot;
    return done.value("incomplete", false) ? kFindings : kDone;
  }

  [[nodiscard]] Result<protocol::BroughtOutAnswer> keep_as(const std::string& set) const {
    return ask_reader(protocol::KeepRequest{
        .set = set, .silent = typed_.output.json, .color = typed_.output.color});
  }

  Result<int> keep() const {
    SBX_TRY(most(2));
    if (operands_.size() < 2)
      return usage("usage", "\"sbx session keep\" needs a session and the name of a set",
                   "sbx session keep work before-lunch");
    SBX_TRY(changes::check_set_name(operands_[1]));
    const protocol::BroughtOutAnswer done = SBX_TRY(keep_as(operands_[1]));
    return answered(write_fields(done, Form::document),
                    done.failures ? exit_status::kCouldNot : kDone);
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
