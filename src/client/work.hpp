#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/event_loop.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "client/cell.hpp"
#include "client/output_pipe.hpp"
#include "client/task.hpp"

namespace sbx::client {

/// What a stream has written so far: its first and its last half MiB.
class Written {
 public:
  void add(std::string_view more);
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// With a line in the gap.
  [[nodiscard]] std::string text() const;

 private:
  std::string head_;
  std::string tail_;
  std::uint64_t bytes_ = 0;
};

/// A cell or a command that runs. A hook may not destroy it.
class Work {
 public:
  /// Called once, with the record. Errors: nothing ran, or the sandbox is gone.
  using Ended = std::function<void(Result<Json> record)>;
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;
  virtual void cancel() = 0;

  Written out;
  Written err;

 protected:
  /// The session has passed it on, and not kept it.
  [[nodiscard]] Json with_output(Json record) const;
};

class CellWork final : public Work {
 public:
  CellWork(session::Client connection, protocol::EvalRequest request)
      : cell_(std::move(connection), std::move(request)) {}
  ~CellWork() override;
  [[nodiscard]] Status attach(EventLoop& loop, Ended ended);
  void cancel() override;

 private:
  EventLoop* loop_ = nullptr;
  EventLoop::TimerId timer_ = EventLoop::kNoTimer;
  Cell cell_;
};

class CommandWork final : public Work {
 public:
  CommandWork(session::Client connection, protocol::CallRequest request)
      : call_(std::move(connection), std::move(request)) {}
  [[nodiscard]] Status attach(EventLoop& loop, Ended ended);
  void cancel() override { call_.cancel(); }

 private:
  void end(Result<protocol::CallEnded> call);

  Ended ended_;
  OutputPipe from_out_;
  OutputPipe from_err_;
  Call call_;
};

}  // namespace sbx::client
