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

namespace sbx::mcp {

/// A path that a model gives, as changes name it: below the workspace, in whose `directory` its
/// commands run. One that leads out means no change.
[[nodiscard]] std::string name_of_change(std::string path, const std::string& directory);

/// Named changes of the session on their way to the user's directory. A process of its own writes
/// them: it may have to wait for another sbx, and goes on to its end whatever becomes of this one.
/// A hook may not destroy it.
class Application {
 public:
  using Ended = std::function<void(Json result)>;

  /// `paths`: as the model gives them. `directory`: in which its commands run.
  Application(session::Client connection, std::vector<std::string> paths, std::string directory,
              std::string state_directory)
      : task_(std::move(connection), {}),
        paths_(std::move(paths)),
        directory_(std::move(directory)),
        state_directory_(std::move(state_directory)) {}
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;
  ~Application();

  /// Errors: host; then the hook is not called.
  [[nodiscard]] Status attach(EventLoop& loop, Ended ended);

 private:
  [[nodiscard]] Status apply(const protocol::SnapshotAnswer& made);
  void read();

  client::Task<protocol::SnapshotRequest> task_;
  std::vector<std::string> paths_;
  std::string directory_;
  std::string state_directory_;
  EventLoop* loop_ = nullptr;
  Ended ended_;
  process::Child child_;
  UniqueFd from_;
  std::string said_;
};

}  // namespace sbx::mcp
