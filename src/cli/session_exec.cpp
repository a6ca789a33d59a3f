#include "cli/session_exec.hpp"

#include <unistd.h>

#include <vector>

#include "cli/parent.hpp"
#include "cli/report.hpp"
#include "record/record.hpp"
#include "record/words.hpp"
#include "run/launch.hpp"
#include "session/client.hpp"
#include "session/json.hpp"
#include "worker/message.hpp"

namespace sbx::cli {
namespace {

class Exec {
 public:
  Exec(const Invocation& typed, const host::Host& host, const std::string& name)
      : typed_(typed), host_(host), name_(name) {}

  int run() {
    auto targets = ReportTargets::prepare(typed_.output);
    targets_ = targets ? std::move(*targets) : ReportTargets::stdout_only(typed_.output);
    request_.id = run::make_run_id();
    if (!targets) return could_not(targets.error());
    const auto wish = this->wish();
    if (!wish) return could_not(wish.error());
    auto client = session::Client::connect(host_, name_);
    if (!client) return could_not(client.error());
    std::vector<int> fds{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    if (typed_.output.events_fd >= 0) fds.push_back(typed_.output.events_fd);
    if (typed_.detach) return detach(*client, *wish, fds);
    const UniqueFd parent = typed_.die_with_parent ? open_parent() : UniqueFd();
    const auto answer = client->call(*wish, fds, parent.get());
    if (!answer) return could_not(answer.error());
    return deliver(answer->record, answer->status);
  }

 private:
  Result<Json> wish() {
    if (typed_.detach && typed_.die_with_parent)
      return fail(Error{.kind = ErrorKind::usage,
                        .code = "usage",
                        .message = "--detach and --die-with-parent exclude each other",
                        .hint = "a call in the background ends with the session at the latest"});
    request_.program = typed_.request;
    for (const auto* list : {&typed_.sets, &typed_.named})
      request_.overrides.insert(request_.overrides.end(), list->begin(), list->end());
    auto variables = SBX_TRY(run::read_variables(typed_.variables));
    for (auto& each : variables) request_.program.environment.push_back(std::move(each));
    request_.program.interactive = request_.program.interactive && ::isatty(STDIN_FILENO) == 1;
    request_.capture = typed_.output.json;
    Json wish{{"op", "call"},
              {"background", typed_.detach},
              {"silent", typed_.output.quiet || (typed_.output.json && !typed_.output.verbose)},
              {"verbose", typed_.output.verbose},
              {"color", static_cast<int>(typed_.output.color)},
              {"record", targets_.any()}};
    session::put_binary(wish, "request", worker::pack(request_));
    return wish;
  }

  int detach(session::Client& client, const Json& wish, const std::vector<int>& fds) const {
    const auto begun = client.ask(wish, fds);
    if (!begun) return tell(begun.error());
    const std::uint64_t call = begun->value("call", std::uint64_t{0});
    return record::print_answer(typed_.output.json ? dump({{"session", name_}, {"call", call}})
                                                   : std::to_string(call) + "\n")
               ? 0
               : exit_status::kCouldNot;
  }

  int tell(const Error& error) const {
    write_stderr(record::error_text(error, paint_for(typed_.output.color, STDERR_FILENO)));
    return exit_status_of(error);
  }

  /// Nothing ran, or nobody knows how it ended.
  int could_not(const Error& error) {
    const int status = tell(error);
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
};

}  // namespace

int session_exec(const Invocation& typed, const host::Host& host, const std::string& name) {
  return Exec(typed, host, name).run();
}

}  // namespace sbx::cli
