#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "base/sys.hpp"
#include "client/place.hpp"
#include "client/task.hpp"
#include "client/work.hpp"

namespace sbx::client {

/// What hooks have done with: it goes after the turn of the event loop in which they ran.
using Retired = std::vector<std::shared_ptr<void>>;

/// A cell or a command, which may go on when the request that began it has been answered. A front
/// end adds what it remembers of it.
struct Job {
  Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  virtual ~Job() = default;

  std::string id;  ///< empty: nobody has heard of it
  std::unique_ptr<Work> work;
  Context* context = nullptr;  ///< of a cell that has not ended
  std::string context_id;      ///< its id
  std::uint64_t began = sys::now_microseconds();
  bool is_cancelled = false;
  std::unique_ptr<Task<protocol::RestartRequest>> restart;
};
using JobPointer = std::shared_ptr<Job>;

/// In an interpreter of the place.
struct CellOrder {
  std::string context_id;  ///< empty: as Place::context()
  std::string language;
  std::string code;
  bool restarts = false;  ///< forgets its variables first
  std::vector<policy::Override> overrides;
};

/// Cells and commands, from their start to their record.
class Jobs {
 public:
  /// Once for each job, perhaps before the function that begins it returns.
  using Ended = std::function<void(const JobPointer& job, Result<Json> record)>;

  Jobs(EventLoop& loop, Place& place, Retired& retired, Ended ended)
      : loop_(loop), place_(place), retired_(retired), ended_(std::move(ended)) {}

  /// Errors: those of Place::context(); then there is no such job.
  [[nodiscard]] Status run_cell(const JobPointer& job, CellOrder order);
  void run_command(const JobPointer& job, protocol::CallRequest request);
  static void end(Job& job);

  /// From here on find() has it. Gives its id.
  const std::string& announce(const JobPointer& job);
  /// Of those that have ended, the last ones stay.
  void note_end(const Job& job);
  /// Null where nobody has heard of one with that id, or it ended long ago.
  [[nodiscard]] JobPointer find(const std::string& id) const;
  /// Nothing of them is heard of any more.
  void clear() { announced_.clear(); }

 private:
  [[nodiscard]] Status restart_first(const JobPointer& job, protocol::EvalRequest request);
  void start_cell(const JobPointer& job, protocol::EvalRequest request);
  template <class Kind>
  void begin_work(const JobPointer& job, std::unique_ptr<Kind> work);
  void finish(const JobPointer& job, Result<Json> record);

  EventLoop& loop_;
  Place& place_;
  Retired& retired_;
  Ended ended_;
  std::map<std::string, JobPointer> announced_;
  std::deque<std::string> kept_;  ///< of them, those that have ended
};

}  // namespace sbx::client
