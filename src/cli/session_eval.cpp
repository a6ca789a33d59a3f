#include "cli/session_eval.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>

#include "base/event_loop.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "cli/cell_results.hpp"
#include "cli/cell_words.hpp"
#include "cli/parent.hpp"
#include "cli/usage.hpp"
#include "record/cell.hpp"
#include "record/words.hpp"
#include "run/launch.hpp"
#include "session/client.hpp"
#include "session/drivers.hpp"
#include "session/json.hpp"
#include "session/message.hpp"
#include "worker/message.hpp"

namespace sbx::cli {
namespace {

constexpr std::size_t kLongestCode = std::size_t{64} << 20;

/// One stream of the cell as events: whole characters, and base64 where it is no text.
class StreamEvents {
 public:
  StreamEvents(const char* name, UniqueFd pipe) : name_(name), pipe_(std::move(pipe)) {}
  [[nodiscard]] int fd() const { return pipe_.get(); }

  /// False at the end.
  bool read() {
    constexpr std::size_t kAtOnce = std::size_t{64} << 10;
    std::string bytes(kAtOnce, '\0');
    const ssize_t got = ::read(pipe_.get(), bytes.data(), bytes.size());
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    bytes.resize(static_cast<std::size_t>(got));
    rest_ += bytes;
    print(got == 0 ? rest_.size() : whole());
    return got > 0;
  }

 private:
  /// The bytes before a character of which the end is still to come.
  [[nodiscard]] std::size_t whole() const {
    constexpr std::size_t kLongestCharacter = 4;
    for (std::size_t back = 1; back < kLongestCharacter && back <= rest_.size(); ++back) {
      const auto byte = static_cast<unsigned char>(rest_[rest_.size() - back]);
      if ((byte & 0xC0U) == 0x80U) continue;  // in the middle of one
      const std::size_t needs = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
      return needs > back ? rest_.size() - back : rest_.size();
    }
    return rest_.size();
  }

  void print(std::size_t count) {
    if (count == 0) return;
    const std::string bytes = rest_.substr(0, count);
    rest_.erase(0, count);
    const bool text = is_utf8(bytes);
    (void)record::print_answer(dump({{"event", name_},
                                     {"text", text ? bytes : base64(bytes)},
                                     {"encoding", text ? "utf-8" : "base64"}}));
  }

  const char* name_;
  UniqueFd pipe_;
  std::string rest_;
};

class Eval {
 public:
  Eval(const Invocation& typed, const host::Host& host, Known known)
      : typed_(typed), host_(host), known_(known) {}

  CellRun run() {
    const auto status = eval();
    run_.status = status ? *status : could_not(status.error());
    if (!status) run_.error = status.error().code;
    return run_;
  }

 private:
  Result<int> eval() {
    const Json wish = SBX_TRY(this->wish());
    if (!typed_.cell.results.empty())
      results_.emplace(SBX_TRY(CellResults::open(typed_.cell.results)));
    client_.emplace(SBX_TRY(session::Client::connect(host_, typed_.operands.front())));
    signals_ = SBX_TRY(take_ending_signals());
    if (typed_.die_with_parent) parent_ = open_parent();
    loop_.emplace(SBX_TRY(EventLoop::make()));
    SBX_TRY(begin(wish));
    while (!ended_ || open_streams_ > 0) SBX_TRY(loop_->run_once());
    if (failure_) return fail(std::move(*failure_));
    return deliver();
  }

  /// No cell ran, or nobody knows how it ended.
  [[nodiscard]] int could_not(const Error& error) const {
    write_stderr(record::error_text(error, paint_for(typed_.output.color, STDERR_FILENO)));
    if (!typed_.cell.stream && !typed_.output.json) return exit_status_of(error);
    record::Cell cell{.id = id_, .context = typed_.cell.context, .language = language()};
    // The interpreter does not outlive the process that supervised it.
    if (error.code == "call-lost" || error.code == "session-gone")
      cell.state = record::CellState::lost;
    cell.name.session = typed_.operands.front();
    return print_record(record::cell_json(cell, error)) ? exit_status_of(error)
                                                        : exit_status::kCouldNot;
  }

  Result<std::string> code() const {
    if (typed_.request.code) return *typed_.request.code;
    const std::string file = typed_.operands.size() > 1 ? typed_.operands[1] : "-";
    if (file != "-") {
      const UniqueFd open = SBX_TRY(sys::open_to_read(file));
      return sys::read_all(open.get(), kLongestCode);
    }
    if (typed_.operands.size() < 2 && ::isatty(STDIN_FILENO) == 1)
      return usage("no-command", "there is no cell to run",
                   "-c CODE, a file, or - for standard input");
    return sys::read_all(STDIN_FILENO, kLongestCode);
  }

  [[nodiscard]] std::string language() const {
    if (!typed_.request.language.empty() || typed_.operands.size() < 2)
      return typed_.request.language;
    const session::Driver* const driver = session::driver_of_script(typed_.operands[1]);
    return driver == nullptr ? "" : std::string(driver->language);
  }

  Result<Json> wish() {
    if (typed_.operands.size() > (typed_.request.code ? 1U : 2U))
      return usage("usage", "\"sbx session eval\" takes one cell", "sbx session eval --help");
    run::Request request;
    request.id = run::make_run_id();
    request.program.code = SBX_TRY(code());
    if (!is_utf8(*request.program.code))
      return usage("bad-code", "the cell is not UTF-8", "convert it: iconv -t utf-8 FILE");
    request.overrides = typed_.named;
    request.capture = typed_.output.json;
    id_ = request.id;
    Json wish{{"op", "eval"},
              {"language", language()},
              {"context", typed_.cell.context},
              {"follow", typed_.cell.stream}};
    session::put_binary(wish, "request", worker::pack(request));
    return wish;
  }

  Status begin(const Json& wish) {
    UniqueFd out;
    UniqueFd err;
    if (typed_.cell.stream) {
      (void)record::print_answer(dump({{"event", "start"}, {"id", id_}}));
      out = SBX_TRY(follow("stdout", out_));
      err = SBX_TRY(follow("stderr", err_));
    }
    const int fds[] = {out.valid() ? out.get() : STDOUT_FILENO,
                       err.valid() ? err.get() : STDERR_FILENO};
    SBX_TRY(client_->say(wish, fds));
    SBX_TRY(loop_->watch(signals_.get(), EPOLLIN, [this](std::uint32_t) { pass_signal_on(); }));
    if (parent_.valid())
      SBX_TRY(loop_->watch(parent_.get(), EPOLLIN, [this](std::uint32_t) {
        loop_->forget(parent_.get());
        cancel(SIGHUP);
      }));
    return loop_->watch(client_->fd(), EPOLLIN, [this](std::uint32_t) { hear(); });
  }

  /// The writing end of a pipe whose contents become events.
  Result<UniqueFd> follow(const char* name, std::optional<StreamEvents>& events) {
    sys::Pipe pipe = SBX_TRY(sys::make_pipe());
    (void)::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
    events.emplace(name, std::move(pipe.read));
    ++open_streams_;
    SBX_TRY(loop_->watch(events->fd(), EPOLLIN, [this, &events](std::uint32_t) {
      if (events->read()) return;
      loop_->forget(events->fd());
      --open_streams_;
    }));
    return std::move(pipe.write);
  }

  void pass_signal_on() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info)
      cancel(static_cast<int>(info.ssi_signo));
  }

  void cancel(int signal) {
    run_.signal = signal;
    (void)client_->say({{"cancel", signal}});
  }

  void hear() {
    auto packet = client_->next();
    if (!packet) {
      failure_ = std::move(packet).error();
    } else if (packet->contains("event")) {
      Json line{{"event", packet->value("event", "")}};
      line.update((*packet)["what"]);
      (void)record::print_answer(dump(line));
      return;
    } else {
      last_ = std::move(*packet);
    }
    loop_->forget(client_->fd());
    ended_ = true;
    if (failure_) open_streams_ = 0;
  }

  // --- the answer

  Result<int> deliver() {
    const int status = last_.value("status", exit_status::kCouldNot);
    Json record = last_.value("cell", Json::object());
    if (results_) SBX_TRY(results_->save(record));
    if (typed_.cell.stream || typed_.output.json)
      return print_record(record) ? status : exit_status::kCouldNot;
    if (const auto error = last_.find("error"); error != last_.end())
      return fail(session::error_from(*error));
    return tell(record) ? status : exit_status::kCouldNot;
  }

  [[nodiscard]] bool print_record(const Json& record) const {
    if (!typed_.cell.stream) return record::print_answer(dump(record));
    return record::print_answer(dump({{"event", "end"}, {"record", record}}));
  }

  [[nodiscard]] bool tell(const Json& record) {
    const Json answer = record.value("answer", Json());
    bool printed = true;
    if (answer.is_object()) {
      run_.count = answer.value("count", std::uint64_t{0});
      for (const Json& each : answer["results"])
        printed = show_result(each, typed_.output.quiet, "--results DIR saves it") && printed;
      if (const Json& error = answer["error"]; error.is_object()) tell_error(error);
    }
    run_.lost_state = record.value("state", "") == "lost";
    if (!typed_.output.quiet) tell_outcome(record, known_);
    return printed;
  }

  const Invocation& typed_;
  const host::Host& host_;
  const Known known_;
  CellRun run_;
  std::string id_;
  std::optional<CellResults> results_;
  std::optional<session::Client> client_;
  UniqueFd signals_;
  UniqueFd parent_;  ///< --die-with-parent
  std::optional<EventLoop> loop_;
  std::optional<StreamEvents> out_;
  std::optional<StreamEvents> err_;
  int open_streams_ = 0;
  bool ended_ = false;
  std::optional<Error> failure_;
  Json last_;
};

}  // namespace

CellRun run_cell(const Invocation& typed, const host::Host& host, Known known) {
  return Eval(typed, host, known).run();
}

}  // namespace sbx::cli
