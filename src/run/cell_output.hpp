#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <sbx/outcome.hpp>

#include "base/event_loop.hpp"
#include "base/unique_fd.hpp"
#include "policy/policy.hpp"
#include "supervise/streams/output_relay.hpp"

namespace sbx::run {

/// How many bytes of each stream come before something else that the interpreter says.
struct OutputPosition {
  std::uint64_t out = 0;
  std::uint64_t err = 0;
};

/// What an interpreter writes to its standard streams, divided among cells: everything that is in
/// the pipes when a cell is done is the cell's; what comes between two cells is kept for the next
/// one, as much as kMostLate of it.
class CellOutput {
 public:
  CellOutput(EventLoop& loop, UniqueFd out, UniqueFd err)
      : loop_(loop), out_{.pipe = std::move(out)}, err_{.pipe = std::move(err)} {}
  CellOutput(const CellOutput&) = delete;
  CellOutput& operator=(const CellOutput&) = delete;
  ~CellOutput() {
    loop_.cancel(patience_);
    loop_.cancel(soon_);
  }

  static constexpr Bytes kMostLate{64 << 10};  ///< of each stream

  /// Where it goes.
  struct Target {
    int out = -1;
    int err = -1;
    bool capture = false;
    const policy::Output* caps = nullptr;  ///< null: it is kept for the next target
    std::string late_out{};                ///< comes first
    std::string late_err{};
    std::function<void()> exceeded;
    std::function<void()> left;  ///< the reader of one of them has left
  };
  /// Errors: internal (epoll).
  Status begin(const Target& target);
  /// The position of what the interpreter says now: all that is in the pipes comes before it.
  [[nodiscard]] OutputPosition delivered();
  /// Reads until the pipes are empty, delivers that, and then calls back, once.
  void complete(std::function<void()> then);
  /// Nobody reads the rest of it any more.
  void abandon();
  /// Takes the streams of the last target, complete.
  [[nodiscard]] std::pair<Stream, Stream> take();
  /// Says why a part of the last target is lost whose reader has not left.
  [[nodiscard]] std::optional<WriteError> write_error() const;

 private:
  struct Side {
    UniqueFd pipe;
    std::unique_ptr<supervise::OutputRelay> relay;
    /// Takes the relay's place where that ended early: the interpreter must not wait for a reader
    /// that is gone.
    std::unique_ptr<supervise::OutputRelay> drain;
    bool is_given_up = false;  ///< abandon() was called for this target
  };
  Status begin(Side& side, int sink, supervise::OutputRelay::Options options);
  void look_soon();
  void settle();
  void replace_ended(Side& side);
  void drop_rest(Side& side);
  [[nodiscard]] bool is_done() const;
  void look_again();

  EventLoop& loop_;
  Side out_;
  Side err_;
  bool completes_ = false;
  std::function<void()> then_;
  EventLoop::TimerId patience_ = EventLoop::kNoTimer;
  EventLoop::TimerId soon_ = EventLoop::kNoTimer;
};

}  // namespace sbx::run
