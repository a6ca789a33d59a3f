#include "cli/session_exec.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "base/sys.hpp"
#include "base/tell.hpp"
#include "base/text.hpp"
#include "cli/console.hpp"
#include "cli/forwarding.hpp"
#include "cli/parent.hpp"
#include "cli/report.hpp"
#include "cli/run_command.hpp"
#include "cli/session_documents.hpp"
#include "cli/session_order.hpp"
#include "cli/usage.hpp"
#include "protocol/packet.hpp"
#include "protocol/requests.hpp"
#include "record/record.hpp"
#include "record/words.hpp"
#include "run/call.hpp"
#include "run/launch.hpp"
#include "run/session_hints.hpp"
#include "session/client.hpp"
#include "session/json.hpp"

namespace sbx::cli {
namespace {

class Exec {
 public:
  Exec(const Invocation& typed, const host::Host& host, const std::string& name)
      : typed_(typed), host_(host), name_(name) {}

  int run() {
    if (const Status prepared = prepare(); !prepared) return could_not(prepared.error());
    const auto request = this->request();
    if (!request) return could_not(request.error());
    auto client = session::Client::connect(host_, name_);
    if (!client) return could_not(client.error());
    const int in = stdin_file_.valid() ? stdin_file_.get() : STDIN_FILENO;
    std::vector<int> fds{in, STDOUT_FILENO, STDERR_FILENO};
    if (typed_.output.events_fd >= 0) fds.push_back(typed_.output.events_fd);
    if (typed_.detach) return detach(*client, *request, fds);
    const UniqueFd parent = typed_.die_with_parent ? open_parent() : UniqueFd();
    const auto answer = run_forwarding(std::move(*client), *request, fds, parent.get());
    if (!answer) return could_not(answer.error());
    console().tell(answer->said.value_or(""));
    return deliver(answer->record.value_or(""), answer->status);
  }

  /// For what keeps the call from being asked for: says it, and writes the record where one is
  /// wanted.
  int refuse(const Error& error, WasReported reported) {
    (void)prepare();
    return reported == WasReported::no ? could_not(error) : note_failure(error);
  }

 private:
  Status prepare() {
    request_.id = run::make_run_id();
    request_.program = typed_.request;
    request_.program.umask = sys::file_mode_mask();
    auto targets = ReportTargets::prepare(typed_.output);
    targets_ = targets ? std::move(*targets) : ReportTargets::stdout_only(typed_.output);
    return targets ? Status() : Status(fail(targets.error()));
  }

  /// What needs a client that stays.
  [[nodiscard]] Status check_detached() const {
    const std::pair<bool, const char*> unfit[] = {{typed_.die_with_parent, "--die-with-parent"},
                                                  {typed_.request.interactive, "--interactive"},
                                                  {!typed_.output.report_file.empty(), "--report"},
                                                  {typed_.output.report_fd >= 0, "--report-fd"}};
    for (const auto& [is_given, option] : unfit)
      if (is_given)
        return usage("usage", fmt::format("--detach and {} exclude each other", option),
                     fmt::format("sbx session wait --json {} CALL prints the record of a call in "
                                 "the background",
                                 printable(name_)));
    const bool reads_terminal = typed_.request.code_from_stdin &&
                                typed_.request.stdin_mode == plan::StdinMode::inherit &&
                                ::isatty(STDIN_FILENO) == 1;
    if (!reads_terminal) return {};
    return usage("usage", "a call in the background can't read its program from a terminal",
                 "-c CODE, or the program through a pipe");
  }

  Result<protocol::CallRequest> request() {
    if (typed_.detach) SBX_TRY(check_detached());
    SBX_TRY(check_program_input(typed_));
    stdin_file_ = SBX_TRY(run::open_stdin(request_.program));
    for (const auto* list : {&typed_.sets, &typed_.named})
      request_.overrides.insert(request_.overrides.end(), list->begin(), list->end());
    auto variables = SBX_TRY(run::read_variables(typed_.variables));
    for (auto& each : variables) request_.program.environment.push_back(std::move(each));
    request_.program.interactive = request_.program.interactive && ::isatty(STDIN_FILENO) == 1;
    request_.capture = typed_.output.json && !typed_.detach;  // the log keeps what is written
    return protocol::CallRequest{
        .id = request_.id,
        .program = request_.program,
        .overrides = request_.overrides,
        .capture = request_.capture,
        .background = typed_.detach,
        .reads_stdin = stdin_file_.valid() || typed_.request.code_from_stdin,
        .open_stdin = typed_.open_stdin,
        .silent = typed_.output.quiet || (typed_.output.json && !typed_.output.verbose),
        .verbose = typed_.output.verbose,
        .colors = wants_colors(),
        .record = targets_.any()};
  }

  /// A log is not a terminal.
  [[nodiscard]] bool wants_colors() const {
    if (typed_.detach) return typed_.output.color == Color::always;
    return paint_for(typed_.output.color, STDERR_FILENO).on;
  }

  int detach(session::Client& client, const protocol::CallRequest& request,
             const std::vector<int>& fds) const {
    if (const Status sent = client.send(request, fds); !sent) return tell(sent.error());
    const auto begun = client.answer<protocol::CallBegun>();
    if (!begun) return tell(begun.error());
    const std::uint64_t call = begun->call;
    const Json json = session::headed(BegunDocument{.session = name_, .call = call});
    if (console().print(typed_.output.json ? dump(json) : std::to_string(call) + "\n")) return 0;
    // Nobody knows its number.
    if (auto again = session::Client::connect(host_, name_))
      (void)again->ask(protocol::KillRequest{.call = call});
    return exit_status::kCouldNot;
  }

  int tell(const Error& error) const {
    console().complain(error, typed_.output.color);
    return exit_status_of(error);
  }

  /// Nothing ran, or nobody knows how it ended.
  int could_not(const Error& error) {
    const Error named = naming_order(run::naming_session(error, name_), typed_, host_);
    (void)tell(named);
    return note_failure(named);
  }

  int note_failure(const Error& error) {
    const int status = exit_status_of(error);
    if (!targets_.any()) return status;
    run::Answer answer;
    answer.errors = {error};
    return deliver(record::record_text(request_, answer), status);
  }

  int deliver(const std::string& record, int status) const {
    if (!targets_.any()) return status;
    const Status written = targets_.write(record);
    return written ? status : tell(written.error());
  }

  const Invocation& typed_;
  const host::Host& host_;
  const std::string& name_;
  ReportTargets targets_;
  run::Request request_;
  UniqueFd stdin_file_;  ///< --stdin FILE
};

}  // namespace

int session_exec(const Invocation& typed, const host::Host& host, const std::string& name) {
  return Exec(typed, host, name).run();
}

int refuse_exec(const Invocation& typed, const host::Host& host, const std::string& name,
                const Error& error, WasReported reported) {
  return Exec(typed, host, name).refuse(error, reported);
}

}  // namespace sbx::cli
