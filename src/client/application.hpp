#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/event_loop.hpp"
#include "base/json.hpp"
#include "base/process.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "client/task.hpp"
#include "protocol/answers.hpp"

namespace sbx::client {

/// What became of the named changes.
struct Applied {
  std::vector<std::string> done;
  std::vector<protocol::LeftFacts> left;  ///< where something changed meanwhile
};
SBX_FIELDS(Applied, done, left)
SBX_EXACT(Applied, done)

/// Named changes of the session on their way to the user's directory. A process of its own writes
/// them: it may have to wait for another sbx, and goes on to its end whatever becomes of this one.
/// A hook may not destroy it.
class Application {
 public:
  /// Errors: nothing was applied; the code "no-changes-kept" where there is nothing to apply.
  using Ended = std::function<void(Result<Applied> applied)>;

  /// `paths`: below the workspace, as changes name them.
  Application(session::Client connection, std::vector<std::string> paths,
              std::string state_directory)
      : task_(std::move(connection), {}),
        paths_(std::move(paths)),
        state_directory_(std::move(state_directory)) {}
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;
  ~Application();

  /// Errors: host; then the hook is not called.
  [[nodiscard]] Status attach(EventLoop& loop, Ended ended);

 private:
  [[nodiscard]] Status apply(const protocol::SnapshotAnswer& made);
  void read();

  Task<protocol::SnapshotRequest> task_;
  std::vector<std::string> paths_;
  std::string state_directory_;
  EventLoop* loop_ = nullptr;
  Ended ended_;
  process::Child child_;
  UniqueFd from_;
  std::string said_;
};

}  // namespace sbx::client
