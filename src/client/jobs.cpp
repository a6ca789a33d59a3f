#include "client/jobs.hpp"

#include <utility>

#include "run/launch.hpp"

namespace sbx::client {
namespace {

constexpr std::size_t kMostEndedJobs = 64;

}  // namespace

Status Jobs::run_cell(const JobPointer& job, CellOrder order) {
  Context* const context = SBX_TRY(place_.context(order.context_id, order.language));
  job->context = context;
  job->context_id = context->id;
  protocol::EvalRequest request{.id = {run::make_run_id()},
                                .language = {context->language},
                                .context = {context->name},
                                .code = std::move(order.code),
                                .overrides = std::move(order.overrides)};
  const bool has_variables = context->used > 0 || context->open > 1;
  if (!order.restarts || !has_variables) {
    start_cell(job, std::move(request));
  } else if (const Status asked = restart_first(job, std::move(request)); !asked) {
    finish(job, fail(asked.error()));
  }
  return {};
}

Status Jobs::restart_first(const JobPointer& job, protocol::EvalRequest request) {
  job->restart = std::make_unique<Task<protocol::RestartRequest>>(
      SBX_TRY(place_.connect()), protocol::RestartRequest{.context = request.context});
  // One that does not live has nothing to forget.
  return job->restart->attach(
      loop_, {.ended = [this, job, request](const auto& /*done*/) { start_cell(job, request); }});
}

void Jobs::start_cell(const JobPointer& job, protocol::EvalRequest request) {
  auto client = place_.connect();
  if (!client) return finish(job, fail(client.error()));
  begin_work(job, std::make_unique<CellWork>(std::move(*client), std::move(request)));
}

void Jobs::run_command(const JobPointer& job, protocol::CallRequest request) {
  request.id = {run::make_run_id()};
  request.silent = true;
  request.record = true;
  auto client = place_.connect();
  if (!client) return finish(job, fail(client.error()));
  begin_work(job, std::make_unique<CommandWork>(std::move(*client), std::move(request)));
}

template <class Kind>
void Jobs::begin_work(const JobPointer& job, std::unique_ptr<Kind> work) {
  const Status begun =
      work->attach(loop_, [this, job](Result<Json> record) { finish(job, std::move(record)); });
  if (!begun) return finish(job, fail(begun.error()));
  job->work = std::move(work);
  if (job->is_cancelled) job->work->cancel();
}

/// A hook of the work calls this, so that the work goes later.
void Jobs::finish(const JobPointer& job, Result<Json> record) {
  if (job->work) retired_.emplace_back(std::move(job->work));
  if (job->context != nullptr) place_.release(*std::exchange(job->context, nullptr));
  ended_(job, std::move(record));
}

void Jobs::end(Job& job) {
  job.is_cancelled = true;
  if (job.work) job.work->cancel();
}

const std::string& Jobs::announce(const JobPointer& job) {
  if (job->id.empty()) {
    job->id = make_id('j');
    announced_[job->id] = job;
  }
  return job->id;
}

void Jobs::note_end(const Job& job) {
  if (job.id.empty()) return;
  kept_.push_back(job.id);
  if (kept_.size() <= kMostEndedJobs) return;
  announced_.erase(kept_.front());
  kept_.pop_front();
}

JobPointer Jobs::find(const std::string& id) const {
  const auto found = announced_.find(id);
  return found == announced_.end() ? nullptr : found->second;
}

}  // namespace sbx::client
