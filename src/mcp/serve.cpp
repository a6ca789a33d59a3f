#include "mcp/serve.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/process.hpp"
#include "base/signals.hpp"
#include "base/sys.hpp"
#include "base/tell.hpp"
#include "base/text.hpp"
#include "host/state.hpp"
#include "mcp/apply.hpp"
#include "mcp/files.hpp"
#include "mcp/log.hpp"
#include "mcp/message.hpp"
#include "mcp/place.hpp"
#include "mcp/rendering.hpp"
#include "mcp/starter.hpp"
#include "mcp/tools.hpp"
#include "mcp/wire.hpp"
#include "mcp/work.hpp"
#include "record/words.hpp"
#include "run/launch.hpp"
#include "session/json.hpp"

namespace sbx::mcp {
namespace {

using session::member_or;
using session::part;
using std::chrono::seconds;

constexpr std::size_t kMostRequests = 64;
constexpr std::size_t kMostBytes = std::size_t{256} << 20;
constexpr std::size_t kMostEndedJobs = 64;
constexpr seconds kProgressEvery{5};
const std::string kResults = "~/results/";
constexpr std::int64_t kUsualWait = 45;
constexpr std::uint64_t kUsualRead = 20'000;

/// What a call has begun. It may go on when its request has been answered.
struct Job {
  std::string id;  ///< empty: the client has not heard of it
  std::unique_ptr<Work> work;
  Context* context = nullptr;  ///< of a cell
  std::string tail;            ///< of the first line
  std::uint64_t began = sys::now_microseconds();
  bool is_cancelled = false;
  std::unique_ptr<client::Task<protocol::RestartRequest>> restart;
  std::shared_ptr<FileWork> saving;  ///< of what the answer has not
  std::optional<Json> result;
};
using JobPointer = std::shared_ptr<Job>;

/// A request for a tool that has not been answered.
struct Pending {
  Request request;
  const Tool* tool = nullptr;
  Json arguments;
  JobPointer job;
  std::shared_ptr<FileWork> files;
  std::shared_ptr<client::Changes> changes;
  EventLoop::TimerId wait = EventLoop::kNoTimer;
  EventLoop::TimerId progress = EventLoop::kNoTimer;
};

std::string key_of(const Json& id) {
  return id.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::uint64_t seconds_since(std::uint64_t began) {
  constexpr std::uint64_t kMicroseconds = 1'000'000;
  return (sys::now_microseconds() - began) / kMicroseconds;
}

bool is_gone(const Error& error) {
  return error.code == "call-lost" || error.code == "session-gone" ||
         error.code == "no-such-session";
}

/// For the model: no command of the operator's, and no name that only this process knows.
std::string sentence_of(const Error& error) {
  if (error.code == "mcp") return error.message;
  if (error.code == "context-busy")
    return "16 cells of this context run or wait already: call wait for one of them first";
  if (error.code == "too-many-contexts")
    return "the sandbox has no place for another context: use a context_id that you have";
  return visible_line(error.message) + ": change the call, or ask the user";
}

class Server {
 public:
  Server(EventLoop loop, Wire wire, UniqueFd signals, const Options& options, const Facts& facts,
         Starter& starter, Log log)
      : loop_(std::move(loop)),
        wire_(std::move(wire)),
        signals_(std::move(signals)),
        options_(options),
        facts_(facts),
        place_(loop_, facts, options, starter,
               [this](const std::string& words) {
                 write_stderr(words);
                 log_.note(words);
               }),
        log_(std::move(log)) {}

  Status run() {
    SBX_TRY(loop_.watch(signals_.get(), EPOLLIN, [this](std::uint32_t) {
      while (signals::next(signals_.get()) != 0) is_over_ = true;
    }));
    if (options_.parent >= 0)
      SBX_TRY(loop_.watch(options_.parent, EPOLLIN, [this](std::uint32_t) {
        loop_.forget(options_.parent);
        is_over_ = true;
      }));
    SBX_TRY(wire_.attach(loop_, {.line = [this](const std::string& line) { take(line); },
                                 .too_long =
                                     [this] {
                                       tell(Problem{nullptr, Code::parse_error,
                                                    "the line is longer than 64 MiB"});
                                     },
                                 .ended = [this] { is_over_ = true; }}));
    while (!is_over_) {
      SBX_TRY(loop_.run_once());
      retired_.clear();
    }
    wire_.finish();
    pending_.clear();
    jobs_.clear();
    place_.end();
    return {};
  }

 private:
  void tell(const Problem& problem) { wire_.send(problem_text(problem)); }
  void tell(const Request& request, Json result) {
    wire_.send(answer_text(request.id, request.era, std::move(result)));
  }

  // ---- requests ----

  void take(const std::string& line) {
    auto message = read_message(line);
    if (const auto* const problem = std::get_if<Problem>(&message)) return tell(*problem);
    if (auto* const request = std::get_if<Request>(&message)) handle(std::move(*request));
  }

  void handle(Request request) {
    const std::string& method = request.method;
    const bool is_modern = request.era == Era::modern;
    if (request.id.is_null()) {
      if (method == "notifications/cancelled") cancel(part(request.params, "requestId"));
    } else if (method == "tools/call") {
      call(std::move(request));
    } else if (method == "tools/list") {
      tell(request, cacheable(is_modern, list_of_tools(facts_)));
    } else if (is_modern && method == "server/discover") {
      tell(request, cacheable(true, {{"supportedVersions", {kModernVersion}},
                                     {"capabilities", {{"tools", Json::object()}}},
                                     {"instructions", instructions_of(facts_)}}));
    } else if (!is_modern && method == "initialize") {
      tell(request, {{"protocolVersion", legacy_version(request.params)},
                     {"capabilities", {{"tools", Json::object()}}},
                     {"serverInfo", {{"name", "sbx"}, {"version", SBX_VERSION}}},
                     {"instructions", instructions_of(facts_)}});
    } else if (!is_modern && method == "ping") {
      tell(request, Json::object());
    } else {
      tell(Problem{request.id, Code::no_such_method, "this server does not have that method"});
    }
  }

  static Json cacheable(bool is_modern, Json result) {
    constexpr int kForMilliseconds = 3'600'000;
    if (is_modern) result.update({{"ttlMs", kForMilliseconds}, {"cacheScope", "public"}});
    return result;
  }

  void call(Request request) {
    const auto refuse = [&](Code code, std::string why) {
      tell(Problem{request.id, code, std::move(why)});
    };
    const Json& name = part(request.params, "name");
    const Tool* const tool =
        name.is_string() ? find_tool(name.get<std::string>(), facts_) : nullptr;
    if (!name.is_string()) return refuse(Code::invalid_params, "params.name is missing");
    if (tool == nullptr) return refuse(Code::invalid_params, "this server does not have that tool");
    std::string key = key_of(request.id);
    if (pending_.contains(key))
      return refuse(Code::invalid_request, "a request with this id is under way");
    if (pending_.size() >= kMostRequests || bytes_ + request.bytes > kMostBytes)
      return refuse(Code::internal_error, "too many requests under way");
    Json arguments = Json::object();
    if (auto given = request.params.find("arguments"); given != request.params.end())
      arguments = std::move(*given);
    if (!arguments.is_object())
      return tell(request,
                  result_of_mistake("arguments is not an object: give one and call again"));
    if (const std::string mistake = mistake_in(*tool, arguments, facts_); !mistake.empty())
      return tell(request, result_of_mistake(mistake));
    bytes_ += request.bytes;
    pending_.emplace(
        key,
        Pending{.request = std::move(request), .tool = tool, .arguments = std::move(arguments)});
    begin(key);
  }

  void begin(const std::string& key) {
    Pending& pending = pending_.at(key);
    show_progress(key, pending, sys::now_microseconds());
    switch (pending.tool->kind) {
      case ToolKind::run_code:
        return place_.prepare([this, key](const std::string& why) { run_code(key, why); });
      case ToolKind::run_command:
        return place_.prepare([this, key](const std::string& why) { run_command(key, why); });
      case ToolKind::wait:
        return wait_for(key);
      case ToolKind::read_file:
      case ToolKind::write_file:
        return place_.prepare([this, key](const std::string& why) { begin_files(key, why); });
      case ToolKind::changes:
        return place_.prepare([this, key](const std::string& why) { show_changes(key, why); });
      case ToolKind::apply_changes:
        return place_.prepare([this, key](const std::string& why) { apply_changes(key, why); });
      case ToolKind::get_policy:
        return answer(key, result_of_text(policy_text(facts_)));
    }
  }

  /// The end of a request.
  void answer(const std::string& key, Json result) {
    const Pending* const pending = find(key);
    if (pending == nullptr) return;
    log_.write(pending->tool->name, &pending->arguments, result);
    if (facts_.is_structured && gives_record(*pending->tool) && !result.contains("isError"))
      add_structure(result);
    tell(pending->request, std::move(result));
    forget(key);
  }

  /// For programs: the record, or the first line where there is none.
  static void add_structure(Json& result) {
    const Json record = part(part(result, "_meta"), "sbx/record");
    const std::string text = member_or(part(result, "content").front(), "text", "");
    result["structuredContent"] =
        record.is_object() ? record : Json{{"status", text.substr(0, text.find('\n'))}};
  }

  Pending* find(const std::string& key) {
    const auto found = pending_.find(key);
    return found == pending_.end() ? nullptr : &found->second;
  }

  void forget(const std::string& key) {
    const auto found = pending_.find(key);
    loop_.cancel(found->second.wait);
    loop_.cancel(found->second.progress);
    bytes_ -= found->second.request.bytes;
    // Their own hooks may have led here.
    retired_.emplace_back(std::move(found->second.files));
    retired_.emplace_back(std::move(found->second.changes));
    pending_.erase(found);
  }

  /// Ends the call; one that only waits for a job leaves that alone.
  void cancel(const Json& id) {
    const std::string key = key_of(id);
    const Pending* const pending = find(key);
    if (pending == nullptr) return;
    const JobPointer job = pending->job;
    const bool is_own = pending->tool->kind != ToolKind::wait;
    log_.write(pending->tool->name, &pending->arguments, result_of_text("cancelled by the client"));
    forget(key);
    if (job && is_own) end(*job);
  }

  static void end(Job& job) {
    job.is_cancelled = true;
    if (job.work) job.work->cancel();
  }

  void show_progress(const std::string& key, Pending& pending, std::uint64_t began) {
    const Json token = part(part(pending.request.params, "_meta"), "progressToken");
    if (!token.is_string() && !token.is_number()) return;
    pending.progress = loop_.after(kProgressEvery, [this, key, token, began] {
      Pending& waiting = pending_.at(key);
      const std::uint64_t passed = seconds_since(began);
      std::string words = fmt::format("{} s", passed);
      if (waiting.job && waiting.job->work)
        words += fmt::format(", {} of output", describe(Bytes{waiting.job->work->out.bytes() +
                                                              waiting.job->work->err.bytes()}));
      wire_.send(
          notification_text("notifications/progress",
                            {{"progressToken", token}, {"progress", passed}, {"message", words}}));
      show_progress(key, waiting, began);
    });
  }

  // ---- jobs ----

  void run_code(const std::string& key, const std::string& mistake) {
    Pending* const pending = find(key);
    if (pending == nullptr) return;
    if (!mistake.empty()) return answer(key, result_of_mistake(mistake));
    const std::string id = member_or(pending->arguments, "context_id", "");
    auto context = place_.context(id, member_or(pending->arguments, "language", ""));
    if (!context) return answer(key, result_of_mistake(sentence_of(context.error())));
    const JobPointer job = make_job(*pending);
    job->context = *context;
    job->tail = fmt::format(" · context_id {}{}", (*context)->id,
                            id.empty() ? " (pass it to keep variables)" : "");
    protocol::EvalRequest request{.id = {run::make_run_id()},
                                  .language = {(*context)->language},
                                  .context = {(*context)->name},
                                  .code = member_or(pending->arguments, "code", ""),
                                  .overrides = overrides_of(pending->arguments)};
    const bool restarts = member_or(pending->arguments, "restart", false) &&
                          (!id.empty() || options_.shares_contexts);
    await(key, *pending, job);
    if (!restarts) return start_cell(job, std::move(request));
    auto client = place_.connect();
    if (!client) return finish(job, fail(client.error()));
    job->restart = std::make_unique<client::Task<protocol::RestartRequest>>(
        std::move(*client), protocol::RestartRequest{.context = request.context});
    // One that does not live has nothing to forget.
    const Status asked = job->restart->attach(
        loop_, {.ended = [this, job, request](const auto& /*done*/) { start_cell(job, request); }});
    if (!asked) finish(job, fail(asked.error()));
  }

  void start_cell(const JobPointer& job, protocol::EvalRequest request) {
    auto client = place_.connect();
    if (!client) return finish(job, fail(client.error()));
    auto work = std::make_unique<CellWork>(std::move(*client), std::move(request));
    begin_work(job, std::move(work));
  }

  void run_command(const std::string& key, const std::string& mistake) {
    Pending* const pending = find(key);
    if (pending == nullptr) return;
    if (!mistake.empty()) return answer(key, result_of_mistake(mistake));
    const JobPointer job = make_job(*pending);
    const Json& arguments = pending->arguments;
    protocol::CallRequest request{.id = {run::make_run_id()},
                                  .overrides = overrides_of(arguments),
                                  .silent = true,
                                  .record = true};
    request.program.after_dashes = true;
    request.program.operands = {facts_.shell, "-c", member_or(arguments, "command", "")};
    request.program.directory = member_or(arguments, "cwd", "");
    await(key, *pending, job);
    auto client = place_.connect();
    if (!client) return finish(job, fail(client.error()));
    begin_work(job, std::make_unique<CommandWork>(std::move(*client), std::move(request)));
  }

  template <class Kind>
  void begin_work(const JobPointer& job, std::unique_ptr<Kind> work) {
    const Status begun =
        work->attach(loop_, [this, job](Result<Json> record) { finish(job, std::move(record)); });
    if (!begun) return finish(job, fail(begun.error()));
    job->work = std::move(work);
    if (job->is_cancelled) job->work->cancel();
  }

  static std::vector<policy::Override> overrides_of(const Json& arguments) {
    const auto given = member_or(arguments, "timeout_s", std::int64_t{0});
    if (given == 0) return {};
    return {
        {.key = "limits.wall_time", .toml = fmt::format("\"{}s\"", given), .option = "timeout_s"}};
  }

  static JobPointer make_job(Pending& pending) {
    pending.job = std::make_shared<Job>();
    return pending.job;
  }

  /// Answers at the end of the job, or after wait_s that it goes on.
  void await(const std::string& key, Pending& pending, const JobPointer& job) {
    pending.job = job;
    const auto most = member_or(pending.arguments, "wait_s", kUsualWait);
    pending.wait = loop_.after(seconds(most), [this, key, job] { tell_running(key, *job, job); });
  }

  void tell_running(const std::string& key, Job& job, const JobPointer& pointer) {
    if (job.id.empty()) {
      job.id = make_id('j');
      jobs_[job.id] = pointer;
    }
    const std::string line = fmt::format("running · job_id {} · {} s so far: call wait{}", job.id,
                                         seconds_since(job.began), job.tail);
    const Work* const work = job.work.get();
    answer(key, result_of_running(line, work == nullptr ? "" : work->out.text(),
                                  work == nullptr ? "" : work->err.text(), facts_.max_text));
  }

  void wait_for(const std::string& key) {
    Pending& pending = pending_.at(key);
    const auto found = jobs_.find(member_or(pending.arguments, "job_id", ""));
    if (found == jobs_.end())
      return answer(key,
                    result_of_mistake("this server has no job of that job_id: it may have ended "
                                      "long ago; run it again"));
    const JobPointer job = found->second;
    if (job->result) return answer(key, *job->result);
    if (member_or(pending.arguments, "kill", false)) end(*job);
    await(key, pending, job);
  }

  // ---- files ----

  FileWork::Connect connects() {
    return [this] { return place_.connect(); };
  }

  void begin_files(const std::string& key, const std::string& mistake) {
    Pending* const pending = find(key);
    if (pending == nullptr) return;
    if (!mistake.empty()) return answer(key, result_of_mistake(mistake));
    const Json& arguments = pending->arguments;
    const std::string path = member_or(arguments, "path", "");
    if (path.empty()) return answer(key, result_of_mistake("the path is empty: name a file"));
    const auto files = std::make_shared<FileWork>(
        loop_, connects(), [this, key](Json result) { answer(key, std::move(result)); });
    pending->files = files;
    if (pending->tool->kind == ToolKind::read_file)
      return files->read(path, member_or(arguments, "offset", std::uint64_t{0}),
                         member_or(arguments, "limit", kUsualRead));
    std::string content = member_or(arguments, "content", "");
    if (member_or(arguments, "encoding", "") == "base64") {
      auto decoded = base64_bytes(content);
      if (!decoded)
        return answer(key, result_of_mistake("content is not base64: correct it and call again"));
      content = std::move(*decoded);
    }
    files->write(path, std::move(content));
  }

  void show_changes(const std::string& key, const std::string& mistake) {
    Pending* const pending = find(key);
    if (pending == nullptr) return;
    if (!mistake.empty()) return answer(key, result_of_mistake(mistake));
    auto client = place_.connect();
    if (!client) return answer(key, result_of_mistake(sentence_of(client.error())));
    const bool diff = member_or(pending->arguments, "diff", false);
    pending->changes = std::make_shared<client::Changes>(
        std::move(*client),
        protocol::ChangesRequest{.view = diff ? protocol::View::diff : protocol::View::list,
                                 .color = Color::never});
    const Status begun = pending->changes->attach(
        loop_,
        {.ended =
             [this, key](const Result<protocol::ChangesAnswer>& seen) {
               if (!seen) return answer(key, result_of_mistake(sentence_of(seen.error())));
               answer(key, result_of_changes(seen->changes.size(), seen->text.value_or(""),
                                             facts_.max_text));
             }},
        std::array{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
    if (!begun) answer(key, result_of_mistake(sentence_of(begun.error())));
  }

  /// One that its client cancels ends all the same: the user's directory is whole at every moment.
  void apply_changes(const std::string& key, const std::string& mistake) {
    Pending* const pending = find(key);
    if (pending == nullptr) return;
    if (!mistake.empty()) return answer(key, result_of_mistake(mistake));
    auto client = place_.connect();
    if (!client) return answer(key, result_of_mistake(sentence_of(client.error())));
    const auto application = std::make_shared<Application>(
        std::move(*client), part(pending->arguments, "paths").get<std::vector<std::string>>(),
        facts_.directory, host::state_directory(facts_.host));
    const auto at = applications_.insert(applications_.end(), application);
    const Status begun = application->attach(loop_, [this, key, at](Json result) {
      retired_.emplace_back(std::move(*at));
      applications_.erase(at);
      answer(key, std::move(result));
    });
    if (!begun) answer(key, result_of_mistake(sentence_of(begun.error())));
  }

  /// A hook of the work calls this, so that the work goes later.
  void finish(const JobPointer& job, Result<Json> record) {
    if (job->work) retired_.emplace_back(std::move(job->work));
    if (job->context != nullptr) place_.release(*std::exchange(job->context, nullptr));
    auto files = record ? files_of_record(*record, facts_.max_text) : std::vector<SavedFile>{};
    if (files.empty() || !place_.has_session()) return conclude(job, record, "");
    const std::string begin = std::to_string(++saved_);
    for (SavedFile& each : files) each.name.insert(0, begin + "-");
    job->saving = std::make_shared<FileWork>(
        loop_, connects(), [this, job, record, name = kResults + begin](const Json& saved) {
          conclude(job, record, saved.contains("isError") ? "" : name);
        });
    const auto saving = job->saving;
    saving->save("~/results", files);
  }

  void conclude(const JobPointer& job, const Result<Json>& record, const std::string& saved_as) {
    if (job->saving) retired_.emplace_back(std::move(job->saving));
    job->result = result_of(*job, record, saved_as);
    std::vector<std::string> keys;
    for (const auto& [key, pending] : pending_)
      if (pending.job == job) keys.push_back(key);
    for (const std::string& key : keys) answer(key, *job->result);
    if (job->id.empty()) return;
    log_.write("end of " + job->id, nullptr, *job->result);
    ended_.push_back(job->id);
    if (ended_.size() <= kMostEndedJobs) return;
    jobs_.erase(ended_.front());
    ended_.pop_front();
  }

  Json result_of(const Job& job, const Result<Json>& record, const std::string& saved_as) {
    const std::string note = place_.take_note();
    if (!record && is_gone(record.error()))
      return result_of_text(
          "stopped: the sandbox has ended, and all variables and files with it: "
          "call again for a new one\n");
    if (!record) return result_of_mistake(sentence_of(record.error()));
    const Json& outcome = part(*record, "outcome");
    if (member_or(outcome, "status", "") == "setup-failed")
      return result_of_mistake("nothing ran: " + visible_line(member_or(outcome, "detail", "")) +
                               ": change the call, or ask the user");
    return result_of_record(
        *record,
        {.note = note, .tail = job.tail, .saved_as = saved_as, .max_text = facts_.max_text});
  }

  EventLoop loop_;
  Wire wire_;
  UniqueFd signals_;
  const Options& options_;
  const Facts& facts_;
  Place place_;
  std::map<std::string, Pending> pending_;                ///< by id
  std::size_t bytes_ = 0;                                 ///< of their lines
  std::map<std::string, JobPointer> jobs_;                ///< that the client has heard of
  std::deque<std::string> ended_;                         ///< of them
  std::list<std::shared_ptr<Application>> applications_;  ///< under way
  std::vector<std::shared_ptr<void>> retired_;            ///< goes after the turn
  std::uint64_t saved_ = 0;  ///< number of the last results that were saved
  Log log_;
  bool is_over_ = false;
};

Status begin_and_serve(Options& options) {
  // The starter gets nothing of the client's, and knows nothing that comes from there.
  Wire wire = SBX_TRY(Wire::take());
  const UniqueFd self = process::open_self();
  if (!self.valid())
    return fail_errno(ErrorKind::host, "cannot-clone", "cannot watch this process");
  run::Request start = options.start;
  start.program.hold = true;
  if (options.session.empty()) start.parent = self.get();
  Starter starter = SBX_TRY(Starter::fork(start));
  const Facts facts = SBX_TRY(facts_of(options));
  Log log = SBX_TRY(Log::open(options.log));  // where a policy is refused, no file is left behind
  UniqueFd signals = SBX_TRY(signals::take());
  Server server(SBX_TRY(EventLoop::make()), std::move(wire), std::move(signals), options, facts,
                starter, std::move(log));
  return server.run();
}

}  // namespace

int serve(Options options) {
  const Status served = begin_and_serve(options);
  if (served) return 0;
  write_stderr(record::error_text(served.error(), {}));
  return exit_status::kCouldNot;
}

}  // namespace sbx::mcp
