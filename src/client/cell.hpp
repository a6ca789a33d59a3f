#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "client/task.hpp"
#include "protocol/requests.hpp"
#include "session/client.hpp"

namespace sbx::client {

/// One stream of a cell, which is delivered in step with the cell's events.
class CellStream {
 public:
  using Deliver = std::function<void(std::string_view bytes)>;

  /// Returns the writing end, for the session. Errors: internal.
  [[nodiscard]] Result<UniqueFd> open(Deliver deliver);
  [[nodiscard]] bool is_open() const { return from_.valid(); }
  [[nodiscard]] int fd() const { return from_.get(); }
  /// Reads what is there, at most a block. False where nothing is.
  bool read();
  [[nodiscard]] bool has_ended() const { return ended_; }
  /// What was written up to this byte has been read, or will never be.
  [[nodiscard]] bool has_until(std::uint64_t position) const {
    return !is_open() || ended_ || delivered_ + read_.size() >= position;
  }
  /// Delivers it; what has not come by now counts as lost.
  void deliver_until(std::uint64_t position);
  /// Delivers what has been read.
  void deliver();

 private:
  void deliver_first(std::size_t count);

  UniqueFd from_;
  Deliver deliver_;
  std::string read_;
  std::uint64_t delivered_ = 0;
  bool ended_ = false;
};

/// A cell in flight.
class Cell {
 public:
  using Ended = Result<protocol::CellEnded>;
  struct Hooks {
    /// What the cell writes. Without them the session writes to the streams that attach() is given,
    /// or nowhere.
    CellStream::Deliver out{};
    CellStream::Deliver err{};
    /// Where the request says `follow`: after what was written before it.
    std::function<void(const protocol::CellEvent& event)> event{};
    std::function<void(Ended ended)> ended;  ///< the last one
  };

  Cell(session::Client connection, protocol::EvalRequest request)
      : connection_(std::move(connection)), request_(std::move(request)) {}
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;
  ~Cell() { leave(); }

  /// Sends the cell. `streams`: standard output and error. Errors: host, internal; then no hook is
  /// called.
  [[nodiscard]] Status attach(EventLoop& loop, Hooks hooks, std::span<const int> streams = {});
  /// Ends the cell as the signal ends a program; a second one ends its context.
  void cancel(int signal = SIGINT);
  /// For who does nothing else: waits for the end.
  [[nodiscard]] Ended run(std::span<const int> streams);

 private:
  using Said = std::variant<protocol::CellEvent, protocol::CellEnded>;
  [[nodiscard]] Result<UniqueFd> follow(CellStream& stream, CellStream::Deliver deliver);
  [[nodiscard]] Status watch(CellStream& stream);
  void read(CellStream& stream);
  void advance();
  [[nodiscard]] bool is_due(const protocol::CellEvent& event);
  void end();
  void leave();

  session::Client connection_;
  protocol::EvalRequest request_;
  Hooks hooks_;
  EventLoop* loop_ = nullptr;
  CellStream out_;
  CellStream err_;
  std::optional<Result<Said>> said_;  ///< what came and is not told yet
  EventLoop::TimerId timer_ = EventLoop::kNoTimer;
  bool has_waited_ = false;  ///< long enough for what comes before `said_`
};

}  // namespace sbx::client
