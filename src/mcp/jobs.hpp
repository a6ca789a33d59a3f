#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "base/sys.hpp"
#include "client/file_work.hpp"
#include "client/place.hpp"
#include "client/task.hpp"
#include "client/work.hpp"
#include "mcp/facts.hpp"
#include "mcp/log.hpp"

namespace sbx::mcp {

/// What hooks have done with: it goes after the turn of the event loop in which they ran.
using Retired = std::vector<std::shared_ptr<void>>;

/// What a call has begun. It may go on when its request has been answered.
struct Job {
  std::string id;  ///< empty: the client has not heard of it
  std::unique_ptr<client::Work> work;
  client::Context* context = nullptr;  ///< of a cell
  std::string tail;                    ///< of the first line
  std::uint64_t began = sys::now_microseconds();
  bool is_cancelled = false;
  std::unique_ptr<client::Task<protocol::RestartRequest>> restart;
  std::shared_ptr<client::FileWork> saving;  ///< of what the answer has not
  std::optional<Json> result;                ///< it has ended
};
using JobPointer = std::shared_ptr<Job>;

/// `began`: of the clock of sys::now_microseconds().
[[nodiscard]] std::uint64_t seconds_since(std::uint64_t began);

/// For the model: no command of the operator's, and no name that only this process knows.
[[nodiscard]] std::string sentence_of(const Error& error);

/// Code and commands, from their start to their result.
class Jobs {
 public:
  using Ended = std::function<void(const JobPointer& job)>;

  /// `ended`: once for each job, perhaps before the function that begins it returns.
  Jobs(EventLoop& loop, client::Place& place, const Options& options, const Facts& facts, Log& log,
       Retired& retired, Ended ended)
      : loop_(loop),
        place_(place),
        options_(options),
        facts_(facts),
        log_(log),
        retired_(retired),
        ended_(std::move(ended)) {}

  /// `arguments`: of the tool. Errors: which context there is not, for sentence_of().
  [[nodiscard]] Result<JobPointer> run_code(const Json& arguments);
  [[nodiscard]] JobPointer run_command(const Json& arguments);
  /// Null where the client has heard of none with that id, or it ended long ago.
  [[nodiscard]] JobPointer find(const std::string& id) const;
  /// What the client hears of a job that goes on: with an id, which it has from then on.
  [[nodiscard]] Json running(const JobPointer& job);
  static void end(Job& job);
  /// Nothing of them is heard of any more.
  void clear() { jobs_.clear(); }

 private:
  void start_cell(const JobPointer& job, protocol::EvalRequest request);
  template <class Kind>
  void begin_work(const JobPointer& job, std::unique_ptr<Kind> work);
  void finish(const JobPointer& job, Result<Json> record);
  void conclude(const JobPointer& job, const Result<Json>& record, const std::string& saved_as);
  [[nodiscard]] Json result_of(const Job& job, const Result<Json>& record,
                               const std::string& saved_as);

  EventLoop& loop_;
  client::Place& place_;
  const Options& options_;
  const Facts& facts_;
  Log& log_;
  Retired& retired_;
  Ended ended_;
  std::map<std::string, JobPointer> jobs_;  ///< that the client has heard of
  std::deque<std::string> kept_;            ///< of them, those that have ended
  std::uint64_t saved_ = 0;                 ///< number of the last results that were saved
};

}  // namespace sbx::mcp
