#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/facts.hpp"
#include "agent/log.hpp"
#include "base/event_loop.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "client/file_work.hpp"
#include "client/jobs.hpp"

namespace sbx::agent {

/// What run_code or run_command has begun.
struct Job final : client::Job {
  bool has_new_context = false;              ///< whose id the client does not know
  std::shared_ptr<client::FileWork> saving;  ///< of what the answer has not
  std::optional<Json> result;                ///< it has ended
};
using JobPointer = std::shared_ptr<Job>;

/// `began`: of the clock of sys::now_microseconds().
[[nodiscard]] std::uint64_t seconds_since(std::uint64_t began);

/// For the model: no command of the operator's, and no name that only this process knows.
[[nodiscard]] std::string sentence_of(const Error& error);

/// Code and commands, from their arguments to their result.
class Jobs {
 public:
  using Ended = std::function<void(const JobPointer& job)>;

  /// `ended`: once for each job, perhaps before the function that begins it returns.
  Jobs(EventLoop& loop, client::Place& place, const Facts& facts, Log& log,
       client::Retired& retired, Ended ended);

  /// `arguments`: of the tool. Errors: which context there is not, for sentence_of().
  [[nodiscard]] Result<JobPointer> run_code(const Json& arguments);
  [[nodiscard]] JobPointer run_command(const Json& arguments);
  /// Null where the client has heard of none with that id, or it ended long ago.
  [[nodiscard]] JobPointer find(const std::string& id) const;
  /// What the client hears of a job that goes on: with an id, which it has from then on.
  [[nodiscard]] Json running(const JobPointer& job);
  static void end(Job& job) { client::Jobs::end(job); }
  /// Nothing of them is heard of any more.
  void clear() { jobs_.clear(); }

 private:
  void save(const JobPointer& job, Result<Json> record);
  void conclude(const JobPointer& job, const Result<Json>& record, const std::string& saved_as);
  [[nodiscard]] Json result_of(const Job& job, const Result<Json>& record,
                               const std::string& saved_as);

  EventLoop& loop_;
  client::Place& place_;
  const Facts& facts_;
  Log& log_;
  client::Retired& retired_;
  Ended ended_;
  client::Jobs jobs_;
  std::uint64_t saved_ = 0;  ///< number of the last results that were saved
};

}  // namespace sbx::agent
