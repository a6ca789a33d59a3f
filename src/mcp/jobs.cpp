#include "mcp/jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/visible_text.hpp"
#include "mcp/rendering.hpp"
#include "run/launch.hpp"
#include "session/json.hpp"

namespace sbx::mcp {
namespace {

using session::member_or;
using session::part;

constexpr std::size_t kMostEndedJobs = 64;
constexpr const char* kResults = "~/results";

bool is_gone(const Error& error) {
  return error.code == "call-lost" || error.code == "session-gone" ||
         error.code == "no-such-session";
}

std::vector<policy::Override> overrides_of(const Json& arguments) {
  const auto given = member_or(arguments, "timeout_s", std::int64_t{0});
  if (given == 0) return {};
  return {
      {.key = "limits.wall_time", .toml = fmt::format("\"{}s\"", given), .option = "timeout_s"}};
}

/// Begins the first line.
std::string note_of(const std::optional<client::Place::Replaced>& replaced) {
  if (!replaced) return "";
  return "new session: variables and files of the old one are gone" +
         (replaced->kept_as.empty() ? "" : ", its changes are kept as " + replaced->kept_as) +
         " · ";
}

}  // namespace

std::uint64_t seconds_since(std::uint64_t began) {
  constexpr std::uint64_t kMicroseconds = 1'000'000;
  return (sys::now_microseconds() - began) / kMicroseconds;
}

std::string sentence_of(const Error& error) {
  struct Sentence {
    std::string_view code;
    std::string_view words;  ///< empty: those of the error
    std::string_view advice;
  };
  constexpr Sentence kKnown[] = {
      {"context-busy", "16 cells of this context run or wait already",
       "call wait for one of them first"},
      {"too-many-contexts", "the sandbox has no place for another context",
       "use a context_id that you have"},
      {"no-such-context", "this server has no context of that context_id",
       "call run_code without context_id"},
      {"context-ended", "", "call run_code without context_id"},
      {"other-language", "", "leave out language, or context_id"},
      {"no-contexts", "", "use run_command"},
      {"contexts-busy", "", "call wait for one of them first"}};
  const auto* const known = std::ranges::find(kKnown, error.code, &Sentence::code);
  if (known == std::end(kKnown))
    return visible_line(error.message) + ": change the call, or ask the user";
  return fmt::format("{}: {}", known->words.empty() ? error.message : known->words, known->advice);
}

Result<JobPointer> Jobs::run_code(const Json& arguments) {
  const std::string id = member_or(arguments, "context_id", "");
  client::Context* const context =
      SBX_TRY(place_.context(id, member_or(arguments, "language", "")));
  const auto job = std::make_shared<Job>();
  job->context = context;
  job->tail = fmt::format(" · context_id {}{}", context->id,
                          id.empty() ? " (pass it to keep variables)" : "");
  protocol::EvalRequest request{.id = {run::make_run_id()},
                                .language = {context->language},
                                .context = {context->name},
                                .code = member_or(arguments, "code", ""),
                                .overrides = overrides_of(arguments)};
  const bool has_variables = !id.empty() || options_.shares_contexts;
  if (!has_variables || !member_or(arguments, "restart", false)) {
    start_cell(job, std::move(request));
    return job;
  }
  auto client = place_.connect();
  if (!client) {
    finish(job, fail(client.error()));
    return job;
  }
  job->restart = std::make_unique<client::Task<protocol::RestartRequest>>(
      std::move(*client), protocol::RestartRequest{.context = request.context});
  // One that does not live has nothing to forget.
  const Status asked = job->restart->attach(
      loop_, {.ended = [this, job, request](const auto& /*done*/) { start_cell(job, request); }});
  if (!asked) finish(job, fail(asked.error()));
  return job;
}

void Jobs::start_cell(const JobPointer& job, protocol::EvalRequest request) {
  auto client = place_.connect();
  if (!client) return finish(job, fail(client.error()));
  begin_work(job, std::make_unique<client::CellWork>(std::move(*client), std::move(request)));
}

JobPointer Jobs::run_command(const Json& arguments) {
  auto job = std::make_shared<Job>();
  protocol::CallRequest request{.id = {run::make_run_id()},
                                .overrides = overrides_of(arguments),
                                .silent = true,
                                .record = true};
  request.program.after_dashes = true;
  request.program.operands = {facts_.shell, "-c", member_or(arguments, "command", "")};
  request.program.directory = member_or(arguments, "cwd", "");
  auto client = place_.connect();
  if (client)
    begin_work(job, std::make_unique<client::CommandWork>(std::move(*client), std::move(request)));
  else
    finish(job, fail(client.error()));
  return job;
}

template <class Kind>
void Jobs::begin_work(const JobPointer& job, std::unique_ptr<Kind> work) {
  const Status begun =
      work->attach(loop_, [this, job](Result<Json> record) { finish(job, std::move(record)); });
  if (!begun) return finish(job, fail(begun.error()));
  job->work = std::move(work);
  if (job->is_cancelled) job->work->cancel();
}

JobPointer Jobs::find(const std::string& id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second;
}

Json Jobs::running(const JobPointer& job) {
  if (job->id.empty()) {
    job->id = client::make_id('j');
    jobs_[job->id] = job;
  }
  const std::string line = fmt::format("running · job_id {} · {} s so far: call wait{}", job->id,
                                       seconds_since(job->began), job->tail);
  const client::Work* const work = job->work.get();
  return result_of_running(line, work == nullptr ? "" : work->out.text(),
                           work == nullptr ? "" : work->err.text(), facts_.max_text);
}

void Jobs::end(Job& job) {
  job.is_cancelled = true;
  if (job.work) job.work->cancel();
}

/// A hook of the work calls this, so that the work goes later.
void Jobs::finish(const JobPointer& job, Result<Json> record) {
  if (job->work) retired_.emplace_back(std::move(job->work));
  if (job->context != nullptr) place_.release(*std::exchange(job->context, nullptr));
  auto files =
      record ? files_of_record(*record, facts_.max_text) : std::vector<client::SavedFile>{};
  if (files.empty() || !place_.has_session()) return conclude(job, record, "");
  const std::string name = fmt::format("{}/{}", kResults, ++saved_);
  for (client::SavedFile& each : files) each.name.insert(0, name + "-");
  const auto saving =
      std::make_shared<client::FileWork>(loop_, [this] { return place_.connect(); });
  job->saving = saving;
  saving->write_all(std::move(files),
                    [this, job, record = std::move(record), name](const Status& saved) {
                      conclude(job, record, saved ? name : "");
                    });
}

void Jobs::conclude(const JobPointer& job, const Result<Json>& record,
                    const std::string& saved_as) {
  if (job->saving) retired_.emplace_back(std::move(job->saving));
  job->result = result_of(*job, record, saved_as);
  ended_(job);
  if (job->id.empty()) return;
  log_.write("end of " + job->id, nullptr, *job->result);
  kept_.push_back(job->id);
  if (kept_.size() <= kMostEndedJobs) return;
  jobs_.erase(kept_.front());
  kept_.pop_front();
}

Json Jobs::result_of(const Job& job, const Result<Json>& record, const std::string& saved_as) {
  const std::string note = note_of(place_.take_replaced());
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
      *record, {.note = note, .tail = job.tail, .saved_as = saved_as, .max_text = facts_.max_text});
}

}  // namespace sbx::mcp
