#include "agent/jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "agent/rendering.hpp"
#include "base/visible_text.hpp"
#include "session/json.hpp"

namespace sbx::agent {
namespace {

using session::member_or;
using session::part;

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

/// Ends the first line.
std::string tail_of(const Job& job) {
  if (job.context_id.empty()) return "";
  return fmt::format(" · context_id {}{}", job.context_id,
                     job.has_new_context ? " (pass it to keep variables)" : "");
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

Jobs::Jobs(EventLoop& loop, client::Place& place, const Facts& facts, Log& log,
           client::Retired& retired, Ended ended)
    : loop_(loop),
      place_(place),
      facts_(facts),
      log_(log),
      retired_(retired),
      ended_(std::move(ended)),
      jobs_(loop, place, retired, [this](const client::JobPointer& job, Result<Json> record) {
        save(std::static_pointer_cast<Job>(job), std::move(record));
      }) {}

Result<JobPointer> Jobs::run_code(const Json& arguments) {
  const auto job = std::make_shared<Job>();
  client::CellOrder order{.context_id = member_or(arguments, "context_id", ""),
                          .language = member_or(arguments, "language", ""),
                          .code = member_or(arguments, "code", ""),
                          .restarts = member_or(arguments, "restart", false),
                          .overrides = overrides_of(arguments)};
  job->has_new_context = order.context_id.empty();
  SBX_TRY(jobs_.run_cell(job, std::move(order)));
  return job;
}

JobPointer Jobs::run_command(const Json& arguments) {
  auto job = std::make_shared<Job>();
  protocol::CallRequest request{.overrides = overrides_of(arguments)};
  request.program.after_dashes = true;
  request.program.operands = {facts_.shell, "-c", member_or(arguments, "command", "")};
  request.program.directory = member_or(arguments, "cwd", "");
  jobs_.run_command(job, std::move(request));
  return job;
}

JobPointer Jobs::find(const std::string& id) const {
  return std::static_pointer_cast<Job>(jobs_.find(id));
}

Json Jobs::running(const JobPointer& job) {
  const std::string line =
      fmt::format("running · job_id {} · {} s so far: call wait{}", jobs_.announce(job),
                  seconds_since(job->began), tail_of(*job));
  const client::Work* const work = job->work.get();
  return result_of_running(line, work == nullptr ? "" : work->out.text(),
                           work == nullptr ? "" : work->err.text(), facts_.max_text);
}

/// What its answer will not have.
void Jobs::save(const JobPointer& job, Result<Json> record) {
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
  if (!job->id.empty()) log_.write("end of " + job->id, nullptr, *job->result);
  jobs_.note_end(*job);
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
      *record,
      {.note = note, .tail = tail_of(job), .saved_as = saved_as, .max_text = facts_.max_text});
}

}  // namespace sbx::agent
