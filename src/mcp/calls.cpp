#include "mcp/calls.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include <sbx/units.hpp>

#include "agent/files.hpp"
#include "agent/rendering.hpp"
#include "base/tell.hpp"
#include "base/text.hpp"
#include "host/state.hpp"
#include "session/json.hpp"

namespace sbx::mcp {
namespace {

using session::member_or;
using session::part;
using std::chrono::seconds;

constexpr std::size_t kMostRequests = 64;
constexpr std::size_t kMostBytes = std::size_t{256} << 20;
constexpr seconds kProgressEvery{5};
constexpr std::int64_t kUsualWait = 45;
constexpr std::uint64_t kUsualRead = 20'000;

std::string key_of(const Json& id) {
  return id.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// For programs: the record, or the first line where there is none.
void add_structure(Json& result) {
  const Json record = part(part(result, "_meta"), "sbx/record");
  const std::string text = member_or(part(result, "content").front(), "text", "");
  result["structuredContent"] =
      record.is_object() ? record : Json{{"status", text.substr(0, text.find('\n'))}};
}

}  // namespace

Calls::Calls(EventLoop& loop, Wire& wire, const agent::Options& options, const agent::Facts& facts,
             client::Starter& starter, agent::Log log)
    : loop_(loop),
      wire_(wire),
      facts_(facts),
      log_(std::move(log)),
      place_(
          loop, facts.host,
          {.session = options.session,
           .prefix = "mcp",
           .shares_contexts = options.shares_contexts,
           .keeps_changes = facts.is_copy,
           .most_contexts = facts.policy.session.contexts.value,
           .accepts = [&facts](const auto& joined) { return client::check_same(facts, joined); }},
          starter,
          [this](const std::string& words) {
            write_stderr(words);
            log_.note(words);
          }),
      jobs_(loop, place_, facts, log_, retired_,
            [this](const agent::JobPointer& job) { ended(job); }) {}

void Calls::take(Request request) {
  const auto refuses = [&](Code code, std::string why) {
    wire_.send(problem_text({request.id, code, std::move(why)}));
  };
  const auto mistaken = [&](const std::string& sentence) {
    wire_.send(answer_text(request.id, request.era, agent::result_of_mistake(sentence)));
  };
  const Json& name = part(request.params, "name");
  const Tool* const tool = name.is_string() ? find_tool(name.get<std::string>(), facts_) : nullptr;
  if (!name.is_string()) return refuses(Code::invalid_params, "params.name is missing");
  if (tool == nullptr) return refuses(Code::invalid_params, "this server does not have that tool");
  const std::string key = key_of(request.id);
  if (pending_.contains(key))
    return refuses(Code::invalid_request, "a request with this id is under way");
  if (pending_.size() >= kMostRequests || bytes_ + request.bytes > kMostBytes)
    return refuses(Code::internal_error, "too many requests under way");
  Json arguments = Json::object();
  if (auto given = request.params.find("arguments"); given != request.params.end())
    arguments = std::move(*given);
  if (!arguments.is_object())
    return mistaken("arguments is not an object: give one and call again");
  if (const std::string mistake = mistake_in(*tool, arguments, facts_); !mistake.empty())
    return mistaken(mistake);
  bytes_ += request.bytes;
  pending_.emplace(
      key, Pending{.request = std::move(request), .tool = tool, .arguments = std::move(arguments)});
  begin(key);
}

void Calls::begin(const std::string& key) {
  Pending& pending = pending_.at(key);
  show_progress(key, pending, sys::now_microseconds());
  if (pending.tool->kind == ToolKind::wait) return wait_for(key, pending);
  if (pending.tool->kind == ToolKind::get_policy)
    return answer(key, agent::result_of_text(agent::policy_text(facts_)));
  place_.prepare([this, key](bool is_there) {
    Pending* const ready = find(key);
    if (ready == nullptr) return;
    if (is_there)
      begin_inside(key, *ready);
    else
      refuse(key, "the sandbox can't start: ask the user to run sbx doctor");
  });
}

void Calls::begin_inside(const std::string& key, Pending& pending) {
  switch (pending.tool->kind) {
    case ToolKind::run_code: {
      const auto job = jobs_.run_code(pending.arguments);
      return job ? await(key, pending, *job) : refuse(key, agent::sentence_of(job.error()));
    }
    case ToolKind::run_command:
      return await(key, pending, jobs_.run_command(pending.arguments));
    case ToolKind::read_file:
    case ToolKind::write_file:
      return use_files(key, pending);
    case ToolKind::changes:
      return show_changes(key, pending);
    case ToolKind::apply_changes:
      return apply_changes(key, pending);
    case ToolKind::wait:
    case ToolKind::get_policy:  // they need no session
      return;
  }
}

/// The end of a request.
void Calls::answer(const std::string& key, Json result) {
  const Pending* const pending = find(key);
  if (pending == nullptr) return;
  log_.write(pending->tool->name, &pending->arguments, result);
  if (facts_.is_structured && gives_record(*pending->tool) && !result.contains("isError"))
    add_structure(result);
  wire_.send(answer_text(pending->request.id, pending->request.era, std::move(result)));
  forget(key);
}

void Calls::refuse(const std::string& key, const std::string& sentence) {
  answer(key, agent::result_of_mistake(sentence));
}

Calls::Pending* Calls::find(const std::string& key) {
  const auto found = pending_.find(key);
  return found == pending_.end() ? nullptr : &found->second;
}

void Calls::forget(const std::string& key) {
  const auto found = pending_.find(key);
  loop_.cancel(found->second.wait);
  loop_.cancel(found->second.progress);
  bytes_ -= found->second.request.bytes;
  // Their own hooks may have led here.
  retired_.emplace_back(std::move(found->second.files));
  retired_.emplace_back(std::move(found->second.changes));
  pending_.erase(found);
}

void Calls::cancel(const Json& id) {
  const std::string key = key_of(id);
  const Pending* const pending = find(key);
  if (pending == nullptr) return;
  const agent::JobPointer job = pending->job;
  const bool is_own = pending->tool->kind != ToolKind::wait;
  log_.write(pending->tool->name, &pending->arguments,
             agent::result_of_text("cancelled by the client"));
  forget(key);
  if (job && is_own) agent::Jobs::end(*job);
}

void Calls::answer_all() {
  while (!pending_.empty()) {
    const std::string key = pending_.begin()->first;
    answer(key, agent::result_of_text(
                    "stopped: the client has ended this server before the call was over\n"));
  }
}

bool Calls::end() {
  pending_.clear();
  jobs_.clear();
  return place_.end();
}

void Calls::show_progress(const std::string& key, Pending& pending, std::uint64_t began) {
  const Json token = part(part(pending.request.params, "_meta"), "progressToken");
  if (!token.is_string() && !token.is_number()) return;
  pending.progress = loop_.after(kProgressEvery, [this, key, token, began] {
    Pending& waiting = pending_.at(key);
    const std::uint64_t passed = agent::seconds_since(began);
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

/// Answers at the end of the job, or after wait_s that it goes on.
void Calls::await(const std::string& key, Pending& pending, const agent::JobPointer& job) {
  if (job->result) return answer(key, *job->result);
  pending.job = job;
  const auto most = member_or(pending.arguments, "wait_s", kUsualWait);
  pending.wait = loop_.after(seconds(most), [this, key, job] { answer(key, jobs_.running(job)); });
}

void Calls::wait_for(const std::string& key, Pending& pending) {
  const agent::JobPointer job = jobs_.find(member_or(pending.arguments, "job_id", ""));
  if (!job)
    return refuse(key,
                  "this server has no job of that job_id: it may have ended long ago; run it "
                  "again");
  if (!job->result && member_or(pending.arguments, "kill", false)) agent::Jobs::end(*job);
  await(key, pending, job);
}

void Calls::ended(const agent::JobPointer& job) {
  std::vector<std::string> keys;
  for (const auto& [key, pending] : pending_)
    if (pending.job == job) keys.push_back(key);
  for (const std::string& key : keys) answer(key, *job->result);
}

// ---- files ----

void Calls::use_files(const std::string& key, Pending& pending) {
  const Json& arguments = pending.arguments;
  const std::string path = member_or(arguments, "path", "");
  if (path.empty()) return refuse(key, "the path is empty: name a file");
  const auto files = std::make_shared<client::FileWork>(loop_, [this] { return place_.connect(); });
  pending.files = files;
  if (pending.tool->kind == ToolKind::read_file) {
    const auto offset = member_or(arguments, "offset", std::uint64_t{0});
    return files->read(path, {.offset = offset, .most = member_or(arguments, "limit", kUsualRead)},
                       [this, key, path, offset](const Result<client::FileWork::Read>& read) {
                         answer(key, agent::result_of_read(path, read, offset));
                       });
  }
  std::string content = member_or(arguments, "content", "");
  if (member_or(arguments, "encoding", "") == "base64") {
    auto decoded = base64_bytes(content);
    if (!decoded) return refuse(key, "content is not base64: correct it and call again");
    content = std::move(*decoded);
  }
  files->write(path, content, [this, key, path, size = content.size()](const Status& written) {
    answer(key, agent::result_of_written(path, size, written));
  });
}

void Calls::show_changes(const std::string& key, Pending& pending) {
  auto client = place_.connect();
  if (!client) return refuse(key, agent::sentence_of(client.error()));
  const bool diff = member_or(pending.arguments, "diff", false);
  const std::string path = member_or(pending.arguments, "path", "");
  protocol::ChangesRequest request{.view = diff ? protocol::View::diff : protocol::View::list};
  if (path != facts_.directory)
    request.below.emplace(agent::name_of_change(path, facts_.directory));
  pending.changes = std::make_shared<client::Changes>(std::move(*client), std::move(request));
  const Status begun = pending.changes->attach(
      loop_, {.ended = [this, key, path](const Result<protocol::ChangesAnswer>& seen) {
        if (!seen) return refuse(key, agent::sentence_of(seen.error()));
        answer(key, agent::result_of_changes(seen->changes.size(), path, seen->text.value_or(""),
                                             facts_.max_text));
      }});
  if (!begun) refuse(key, agent::sentence_of(begun.error()));
}

/// One that its client cancels ends all the same: the user's directory is whole at every moment.
void Calls::apply_changes(const std::string& key, const Pending& pending) {
  auto client = place_.connect();
  if (!client) return refuse(key, agent::sentence_of(client.error()));
  std::vector<std::string> paths;
  for (const Json& each : part(pending.arguments, "paths"))
    paths.push_back(agent::name_of_change(each.get<std::string>(), facts_.directory));
  const auto application = std::make_shared<client::Application>(
      std::move(*client), std::move(paths), host::state_directory(facts_.host));
  const auto at = applications_.insert(applications_.end(), application);
  const Status begun =
      application->attach(loop_, [this, key, at](const Result<client::Applied>& applied) {
        retired_.emplace_back(std::move(*at));
        applications_.erase(at);
        answer(key, agent::result_of_applied(applied));
      });
  if (!begun) refuse(key, agent::sentence_of(begun.error()));
}

}  // namespace sbx::mcp
